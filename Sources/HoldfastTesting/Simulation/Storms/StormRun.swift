// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// One run of a scenario: jumps from event to event, and lets the calls run in between.
struct StormRun: Sendable {
    private let scenario: StormScenario
    private let seed: UInt64
    private let makeFactory: @Sendable (Int, UInt64) -> any RetrierFactory
    private let executor = SimulationExecutor()
    private let clock = SimulationClock()

    init(
        _ scenario: StormScenario,
        seed: UInt64,
        makeFactory: @escaping @Sendable (Int, UInt64) -> any RetrierFactory
    ) {
        self.scenario = scenario
        self.seed = seed
        self.makeFactory = makeFactory
    }

    /// Runs it on a thread of its own, so that no thread of the tasks' pool is kept for seconds.
    func report() async -> StormReport {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: run()) }
        }
    }

    private func run() -> StormReport {
        var numbers = SimulationNumbers(seed: seed)
        let world = StormWorld(scenario, seed: numbers.seed())
        var arrivals = Arrivals(scenario, seed: numbers.seed())
        let configuration = configuration
        let refusal = StatusCode(rawValue: scenario.server.refusal)
        let pipelines = (0..<scenario.processes).map { process in
            Pipeline(
                transport: StormTransport(process: process, world: world, refusal: refusal),
                retrierFactory: makeFactory(process, numbers.seed()),
                configuration: configuration
            )
        }
        while true {
            executor.drain()
            let (arrival, wake) = (arrivals.next, clock.nextDeadline)
            if let arrival, wake.map({ arrival <= $0 }) ?? true {
                clock.move(to: arrival)
                guard let process = arrivals.removeNext() else { break }
                begin(pipelines[process], process, world)
            } else if wake != nil {
                clock.wakeNext()
            } else {
                break
            }
        }
        return StormReport(scenario, seed: seed, world.book)
    }

    private func begin(_ pipeline: Pipeline, _ process: Int, _ world: StormWorld) {
        let start = clock.now.sinceOrigin
        world.callBegan(process, now: start)
        let clock = clock
        _ = Task(executorPreference: executor) {
            let response = try? await pipeline.send(StormRun.request)
            world.callEnded(
                process,
                start: start,
                now: clock.now.sinceOrigin,
                succeeded: response?.status.isSuccessful ?? false
            )
        }
    }

    private var configuration: PipelineConfiguration {
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        configuration.callTimeout = Duration(boundedSeconds: scenario.deadline)
        configuration.attemptTimeout = Duration(boundedSeconds: scenario.attemptTimeout)
        configuration.redirects = .handUp
        configuration.executor = executor
        return configuration
    }

    private static let request = URLRequest(url: URL(string: "https://storm.example/") ?? URL(filePath: "/"))
}

/// When calls begin, and in which process.
private struct Arrivals {
    private var queue = EventQueue<Int>()
    private var numbers: SimulationNumbers
    private let meanGap: Double?
    private let horizon: Duration

    init(_ scenario: StormScenario, seed: UInt64) {
        numbers = SimulationNumbers(seed: seed)
        horizon = Duration(boundedSeconds: scenario.horizon)
        if let burst = scenario.burst {
            meanGap = nil
            for call in 0..<burst {
                queue.add(call % scenario.processes, at: Duration(boundedSeconds: numbers.uniform() * 0.01))
            }
        } else {
            let gap = Double(scenario.processes) / (scenario.rate ?? 1)
            meanGap = gap
            for process in 0..<scenario.processes { add(process, after: .zero, gap) }
        }
    }

    var next: Duration? { queue.next?.time }

    mutating func removeNext() -> Int? {
        guard let (time, process) = queue.removeNext() else { return nil }
        if let meanGap { add(process, after: time, meanGap) }
        return process
    }

    private mutating func add(_ process: Int, after time: Duration, _ meanGap: Double) {
        let next = time + Duration(boundedSeconds: numbers.exponential(mean: meanGap))
        if next < horizon { queue.add(process, at: next) }
    }
}
