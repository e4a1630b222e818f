// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Holdfast
public import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// A transport around another one that lets things go wrong by a plan, so that retries, caches and their settings can be
/// tried before the network tries them.
///
/// Exchanges are numbered as they come, and what befalls a number is fixed by the ``FaultPlan``: the same numbers fail in each
/// run from the same seed. All waits go by the call's clock. Safe to use from any number of tasks.
///
/// ```swift
/// let shaky = FaultInjectingTransport(transport, plan: .chance(seed: 7, [
///     (0.05, .fail(progress: .bodySent)), (0.05, .status(503)), (0.01, .truncate(after: 1000)),
/// ]))
/// ```
public final class FaultInjectingTransport: Transport {
    private struct Numbers {
        var seen = 0
        var befallen: [Int] = []
    }

    private let transport: any Transport
    private let plan: FaultPlan
    private let isExposed: @Sendable (URLRequest) -> Bool
    private let numbers = Mutex(Numbers())

    /// A transport that is exposed to faults.
    ///
    /// - Parameters:
    ///   - transport: sends what no fault keeps back.
    ///   - plan: what befalls which exchange.
    ///   - isExposed: whether the plan is for a request; others pass and are not numbered. All by default.
    public init(
        _ transport: any Transport,
        plan: FaultPlan,
        isExposed: @escaping @Sendable (URLRequest) -> Bool = { _ in true }
    ) {
        self.transport = transport
        self.plan = plan
        self.isExposed = isExposed
    }

    /// How many exchanges the plan was asked about.
    public var exposedCount: Int { numbers.withLock { $0.seen } }

    /// The numbers of those that met a fault, in order.
    public var befallen: [Int] { numbers.withLock { $0.befallen } }

    public var enforcesDeadline: Bool { transport.enforcesDeadline }

    public func implicitFields(for request: URLRequest) -> HeaderFields {
        transport.implicitFields(for: request)
    }

    public func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        transport.implicitFields(for: request, context: context)
    }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        guard let fault = nextFault(for: request) else {
            return try await transport.send(request, body: body, context: context)
        }
        try await wait(fault.wait, context)
        switch fault.kind {
        case .none:
            return try await transport.send(request, body: body, context: context)
        case .failure(let error):
            if let progress = error.progress, progress >= .bodySent {
                let response = try await transport.send(request, body: body, context: context)
                response.body.discard()
            }
            throw error
        case .silence:
            try await wait(.seconds(1 << 40), context)
            throw CancellationError()
        case .response(let status, let fields):
            return Response(status: status, fields: fields, url: request.url)
        case .truncation(let bytes):
            var response = try await transport.send(request, body: body, context: context)
            response.body = ResponseBody(TruncatedBody(response.body, bytes: bytes), length: response.body.length)
            return response
        }
    }

    private func nextFault(for request: URLRequest) -> Fault? {
        guard isExposed(request) else { return nil }
        return numbers.withLock { numbers in
            numbers.seen += 1
            let fault = plan.fault(for: numbers.seen)
            if fault != nil { numbers.befallen.append(numbers.seen) }
            return fault
        }
    }

    private func wait(_ length: Duration, _ context: CallContext) async throws {
        guard length > .zero else { return }
        let end = context.clock.now.advanced(by: length)
        guard let deadline = context.attemptDeadline, deadline < end else {
            return try await context.clock.sleep(until: end)
        }
        try await context.clock.sleep(until: deadline)
        throw ServiceError(.timeout, "Injected: the attempt's deadline passed.", progress: .bodySent)
    }
}

/// Something that goes wrong with one exchange.
public struct Fault: Sendable {
    enum Kind: Sendable {
        case failure(ServiceError)
        case silence
        case response(StatusCode, HeaderFields)
        case truncation(bytes: Int)
        case none
    }

    let kind: Kind
    var wait: Duration = .zero

    /// Fails as a broken connection does, after `progress` was made.
    ///
    /// From `.bodySent` on the request reaches the transport, and what it answers is lost: the server may have acted. Before
    /// that nothing is sent.
    public static func fail(
        _ code: ServiceError.Code = .connectionLost,
        progress: TransportProgress,
        connectionReused: Bool = false
    ) -> Fault {
        let message = "Injected: the exchange failed with \(code)."
        return Fault(
            kind: .failure(ServiceError(code, message, progress: progress, connectionReused: connectionReused))
        )
    }

    /// Never answers and sends nothing; ends with `.timeout` at the attempt's deadline, or with cancellation.
    public static let silence = Fault(kind: .silence)

    /// Answers with this status, without asking the transport.
    public static func status(_ status: Int, _ fields: HeaderFields = HeaderFields()) -> Fault {
        Fault(kind: .response(StatusCode(rawValue: status), fields))
    }

    /// Sends the request after a wait on the call's clock.
    public static func delay(_ length: Duration) -> Fault {
        Fault(kind: .none, wait: length)
    }

    /// Breaks the connection after so many bytes of the response's body; at its end where it is shorter.
    public static func truncate(after bytes: Int) -> Fault {
        Fault(kind: .truncation(bytes: max(0, bytes)))
    }

    /// The same fault after a wait on the call's clock, which ends with the attempt's deadline at the latest.
    public func delayed(by length: Duration) -> Fault {
        var fault = self
        fault.wait = length
        return fault
    }
}

/// Which exchanges a fault befalls: by their number, or by chance from a seed.
public struct FaultPlan: Sendable {
    private enum Form: Sendable {
        case list([Fault?], repeats: Bool)
        case chance(seed: UInt64, [(share: Double, fault: Fault)])
    }

    private let form: Form

    /// One entry for each exchange in order; nil leaves it alone, and so does the end of the list.
    ///
    /// - Parameters:
    ///   - faults: what befalls each exchange.
    ///   - repeats: whether the list begins again at its end; false by default.
    public static func list(_ faults: [Fault?], repeats: Bool = false) -> FaultPlan {
        FaultPlan(form: .list(faults, repeats: repeats))
    }

    /// Each exchange meets one of these faults with its share, from 0 to 1, or none; shares beyond 1 in all are cut.
    ///
    /// What befalls the exchange of a number follows from the seed and that number alone, on every platform.
    public static func chance(seed: UInt64, _ faults: [(share: Double, fault: Fault)]) -> FaultPlan {
        FaultPlan(form: .chance(seed: seed, faults))
    }

    /// What befalls an exchange.
    ///
    /// - Parameter number: its number among those that the plan is for; the first is 1.
    public func fault(for number: Int) -> Fault? {
        switch form {
        case .list(let faults, let repeats):
            guard number >= 1, !faults.isEmpty else { return nil }
            let index = repeats ? (number - 1) % faults.count : number - 1
            return index < faults.count ? faults[index] : nil
        case .chance(let seed, let faults):
            var generator = SeededGenerator(seed: seed &+ UInt64(truncatingIfNeeded: number) &* 0xD134_2543_DE82_EF95)
            var rest = Double.random(in: 0..<1, using: &generator)
            for (share, fault) in faults where share > 0 {
                if rest < share { return fault }
                rest -= share
            }
            return nil
        }
    }
}

/// A response body that breaks off after a number of bytes, as a lost connection does.
final class TruncatedBody: ByteSource {
    private struct State {
        var memory: ByteChunk?
        var rest: Int
    }

    private let source: (any ByteSource)?
    private let state: Mutex<State>

    init(_ body: ResponseBody, bytes: Int) {
        source = body.source
        state = Mutex(State(memory: body.bytesInMemory, rest: bytes))
    }

    func next() async throws -> ByteChunk? {
        guard state.withLock({ $0.rest }) > 0 else { throw broken() }
        let chunk: ByteChunk?
        if let source {
            chunk = try await source.next()
        } else {
            chunk = state.withLock { state in
                defer { state.memory = nil }
                return state.memory
            }
        }
        guard let chunk, !chunk.isEmpty else { throw broken() }
        let taken = state.withLock { state in
            let taken = min(state.rest, chunk.count)
            state.rest -= taken
            return taken
        }
        return taken == chunk.count ? chunk : ByteChunk(Array(chunk.array.prefix(taken)))
    }

    func cancel() {
        source?.cancel()
        state.withLock { $0.memory = nil }
    }

    private func broken() -> ServiceError {
        cancel()
        return ServiceError(
            .connectionLost,
            "Injected: the connection broke in the middle of the response's body.",
            progress: .bytesReceived
        )
    }
}
