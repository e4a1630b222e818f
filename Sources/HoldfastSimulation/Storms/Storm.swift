// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import Foundation
    internal import FoundationNetworking
#else
    internal import Foundation
#endif

/// Runs retriers through a scenario: real pipelines, a simulated server and clients, virtual time.
///
/// Nothing waits for or measures real time, so a run only takes processor time. The same seed gives the same events on every
/// machine, as long as the retriers draw all random numbers from the seed that they get and start no unstructured tasks outside of
/// `PipelineConfiguration.executor`.
///
/// ```swift
/// let reports = try await Storm(.outage).run(.default)
/// #expect(reports.figures.loadInFault <= 1.2)
/// ```
public struct Storm: Sendable {
    /// The scenario.
    public let scenario: StormScenario

    /// A storm with a scenario.
    public init(_ scenario: StormScenario) { self.scenario = scenario }

    /// Runs the retriers of `makeFactory` once for each seed of the scenario, one after another, each on its own thread.
    ///
    /// - Parameter makeFactory: makes what a client process keeps for its lifetime. Called for each process before the run;
    ///   `process` counts from 0, and `seed` is for its random numbers.
    /// - Returns: a report for each seed, in order.
    /// - Throws: ``StormScenarioError`` if the scenario is invalid. A run ignores cancellation.
    public func run(
        _ makeFactory: @escaping @Sendable (_ process: Int, _ seed: UInt64) -> any RetrierFactory
    ) async throws -> [StormReport] {
        try scenario.validate()
        var reports: [StormReport] = []
        for seed in scenario.seeds {
            try Task.checkCancellation()
            let run = StormRun(scenario, seed: seed, makeFactory: makeFactory)
            reports.append(await run.report())
        }
        return reports
    }

    /// Runs rules. If the scenario sets the number of attempts and the rules allow more than one, the scenario's number is used.
    ///
    /// - Returns: a report for each seed, in order.
    /// - Throws: ``StormScenarioError`` or `RetryRulesError` if the scenario or the rules are invalid.
    public func run(_ rules: RetryRules) async throws -> [StormReport] {
        var rules = rules
        if let attempts = scenario.attempts, rules.maxAttempts > 1 { rules.maxAttempts = attempts }
        try rules.validate()
        let given = rules
        return try await run { _, seed in .backoff(given, seed: seed) }
    }

    /// Runs the rules of a subject.
    ///
    /// - Returns: a report for each seed, in order.
    /// - Throws: like the other forms.
    public func run(_ subject: StormSubject) async throws -> [StormReport] {
        try await run(subject.rules)
    }
}

/// Named rules: Holdfast's presets, and the defaults of other libraries.
public struct StormSubject: Sendable, Hashable {
    /// The name, for reports.
    public let name: String
    /// The rules.
    public let rules: RetryRules

    /// A subject.
    public init(_ name: String, rules: RetryRules) {
        self.name = name
        self.rules = rules
    }

    /// The presets of `RetryRules`, by their names.
    public static let presets = [
        StormSubject("default", rules: .default), StormSubject("strict", rules: .strict),
        StormSubject("patient", rules: .patient),
        StormSubject("interactive", rules: .interactive), StormSubject("gateway", rules: .gateway),
        StormSubject("none", rules: .never),
    ]

    /// The defaults of other libraries, as far as they show with a simulated server without hints: attempts, waits and budget.
    public static let peers = [fullJitter, aws, grpc, finagle, alamofire, polly, immediate]

    /// Three retries without a wait.
    public static let immediate = peer(
        "3-retries-immediate",
        attempts: 4,
        backoff: Backoff(base: .zero, jitter: .none),
        budget: .unlimited
    )

    /// Four attempts, full jitter below 100 ms, 200 ms and 400 ms, no budget.
    public static let fullJitter = peer("full-jitter", attempts: 4, backoff: Backoff(), budget: .unlimited)

    /// The standard mode of the AWS SDKs since 2026 (2.1): three attempts, full jitter from 50 ms, 500 tokens, and 14 for each
    /// retry.
    public static let aws = peer("aws-2.1", attempts: 3, backoff: Backoff(base: .milliseconds(50)), budget: .aws21)

    /// gRPC's retry policy (A6) with the numbers of its text: four attempts, 100 ms to 1 s plus or minus a fifth, and a throttle of
    /// 10 tokens and 0.1.
    public static let grpc = peer(
        "grpc",
        attempts: 4,
        backoff: Backoff(cap: .seconds(1), jitter: .proportional(0.2)),
        budget: .grpc()
    )

    /// Finagle's budget, a fifth of the calls and 10 retries per second, with four attempts and full jitter.
    public static let finagle = peer("finagle", attempts: 4, backoff: Backoff(), budget: .finagle)

    /// Polly's retries as configured by .NET's standard resilience handler: four attempts, from 2 s, its jitter, no budget.
    public static let polly = peer(
        "polly",
        attempts: 4,
        backoff: Backoff(base: .seconds(2), jitter: .pollyV2),
        budget: .unlimited
    )

    /// The defaults of Alamofire's RetryPolicy: three attempts, after 0.5 s and 1 s, no jitter, no budget.
    public static let alamofire = peer(
        "alamofire",
        attempts: 3,
        backoff: Backoff(base: .milliseconds(500), cap: .seconds(1 << 30), jitter: .none),
        budget: .unlimited
    )

    /// Rules with the same wait after all failures, without regard to the server's hints and other calls.
    private static func peer(
        _ name: String,
        attempts: Int,
        backoff: Backoff,
        budget: RetryBudget
    ) -> StormSubject {
        var rules = RetryRules(backoff: backoff, maxAttempts: attempts)
        rules.throttlingBackoff = backoff
        rules.budget = budget
        rules.obeysRetryAfter = false
        rules.obeysRateLimit = false
        rules.closesGate = false
        return StormSubject(name, rules: rules)
    }
}

/// One run of a scenario: jumps from event to event, and runs the calls in between.
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

    /// Runs on its own thread, so that it does not occupy a thread of the tasks' pool for seconds.
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
                begin(pipelines[process], process: process, resource: arrivals.resource(), world: world)
            } else if wake != nil {
                clock.wakeNext()
            } else {
                break
            }
        }
        return StormReport(scenario, seed: seed, book: world.book)
    }

    private func begin(_ pipeline: Pipeline, process: Int, resource: Int, world: StormWorld) {
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
        configuration.redirects = .returnToCaller
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

    /// Removes the next call and returns its process.
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

    /// The resource that a call requests.
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
