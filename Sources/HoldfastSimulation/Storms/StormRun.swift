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
                guard let process = arrivals.removeNext() else { continue }
                begin(pipelines[process], process, resource: arrivals.resource(), world)
            } else if wake != nil {
                clock.wakeNext()
            } else {
                break
            }
        }
        return StormReport(scenario, seed: seed, world.book)
    }

    private func begin(_ pipeline: Pipeline, _ process: Int, resource: Int, _ world: StormWorld) {
        let start = clock.now.sinceOrigin
        world.callBegan(process, now: start)
        let clock = clock
        _ = Task(executorPreference: executor) {
            let response = try? await pipeline.send(StormRun.request(for: resource))
            world.callEnded(
                process,
                resource: resource,
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

    private static func request(for resource: Int) -> URLRequest {
        var request = request
        if resource > 0 { request.url?.append(path: "\(resource)") }
        return request
    }
}

/// When calls begin, and in which process.
private struct Arrivals {
    private enum Event {
        case call(Int)
        /// A call, its batch, and the time of the next.
        case batch(Int)
    }

    private var queue = EventQueue<Event>()
    private var numbers: SimulationNumbers
    private let scenario: StormScenario
    private let horizon: Duration

    init(_ scenario: StormScenario, seed: UInt64) {
        numbers = SimulationNumbers(seed: seed)
        self.scenario = scenario
        horizon = Duration(boundedSeconds: scenario.horizon)
        var arrivals = scenario.arrivals
        if arrivals.isEmpty, let burst = scenario.burst { arrivals = [.init(at: 0, calls: burst)] }
        if arrivals.isEmpty {
            for process in 0..<scenario.processes {
                let first = scenario.period.map { numbers.uniform() * $0 }
                add(process, after: .zero, seconds: first ?? gap())
            }
        }
        for arrival in arrivals {
            for call in 0..<arrival.calls {
                let time = arrival.at + numbers.uniform() * arrival.spread
                queue.add(.call(call % scenario.processes), at: Duration(boundedSeconds: time))
            }
        }
    }

    var next: Duration? { queue.next?.time }

    /// Takes out the next call: its process.
    mutating func removeNext() -> Int? {
        guard let (time, event) = queue.removeNext() else { return nil }
        switch event {
        case .call(let process):
            return process
        case .batch(let process):
            for _ in 1..<max(1, scenario.batch) {
                let later = Duration(boundedSeconds: numbers.uniform() * scenario.batchSpread)
                queue.add(.call(process), at: time + later)
            }
            add(process, after: time, seconds: scenario.period ?? gap())
            return process
        }
    }

    /// What a call asks for.
    mutating func resource() -> Int {
        scenario.resources > 1 ? min(Int(numbers.uniform() * Double(scenario.resources)), scenario.resources - 1) : 0
    }

    private mutating func gap() -> Double {
        numbers.exponential(mean: Double(scenario.processes * scenario.batch) / (scenario.rate ?? 1))
    }

    private mutating func add(_ process: Int, after time: Duration, seconds: Double) {
        let next = time + Duration(boundedSeconds: seconds)
        if next < horizon { queue.add(.batch(process), at: next) }
    }
}
