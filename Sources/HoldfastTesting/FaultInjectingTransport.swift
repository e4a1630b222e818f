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

/// A transport around another one that injects faults by a plan, so that you can test retries, caches and their settings without a
/// failing network.
///
/// Exchanges are numbered as they arrive, and the ``FaultPlan`` determines the fault for each number: with the same seed, the same
/// numbers fail in each run. All waits use the call's clock. Safe to use from any number of tasks.
///
/// ```swift
/// let shaky = FaultInjectingTransport(transport, plan: .chance(seed: 7, [
///     (0.05, .fail(progress: .bodySent)), (0.05, .status(503)), (0.01, .truncate(after: 1000)),
/// ]))
/// ```
public final class FaultInjectingTransport: WrappingTransport {
    private struct Numbers {
        var seen = 0
        var befallen: [Int] = []
    }

    package let transport: any Transport
    private let plan: FaultPlan
    private let isExposed: @Sendable (URLRequest) -> Bool
    private let numbers = Mutex(Numbers())

    /// A transport with injected faults.
    ///
    /// - Parameters:
    ///   - transport: sends what no fault holds back.
    ///   - plan: which exchange gets which fault.
    ///   - isExposed: whether the plan applies to a request; others pass and are not numbered. All by default.
    public init(
        _ transport: any Transport,
        plan: FaultPlan,
        isExposed: @escaping @Sendable (URLRequest) -> Bool = { _ in true }
    ) {
        self.transport = transport
        self.plan = plan
        self.isExposed = isExposed
    }

    /// How many exchanges the plan applied to.
    package var exposedCount: Int { numbers.withLock { $0.seen } }

    /// The numbers of the exchanges that got a fault, in order.
    package var befallen: [Int] { numbers.withLock { $0.befallen } }

    public func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        guard let fault = nextFault(for: request) else {
            return try await transport.send(request, body: body, context: context)
        }
        try await context.hold(fault.wait)
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
            try await context.hold(.seconds(1 << 40))
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
}

/// A fault of one exchange.
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

    /// Fails like a broken connection, after the exchange has made `progress`.
    ///
    /// From `.bodySent` on, the request reaches the transport and its response is lost: the server may have acted. Before that,
    /// nothing is sent.
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
    public static func status(_ status: Int, fields: HeaderFields = HeaderFields()) -> Fault {
        Fault(kind: .response(StatusCode(rawValue: status), fields))
    }

    /// Sends the request after a wait on the call's clock.
    public static func delay(_ length: Duration) -> Fault { Fault(kind: .none, wait: length) }

    /// Breaks the connection after this many bytes of the response's body; at its end if it is shorter.
    public static func truncate(after bytes: Int) -> Fault {
        Fault(kind: .truncation(bytes: max(0, bytes)))
    }

    /// The same fault after a wait on the call's clock, which ends no later than the attempt's deadline.
    public func delayed(by length: Duration) -> Fault {
        var fault = self
        fault.wait = length
        return fault
    }
}

/// Which exchanges get which fault: by number, or at random from a seed.
public struct FaultPlan: Sendable {
    private enum Form: Sendable {
        case list([Fault?], repeats: Bool)
        case chance(seed: UInt64, [(share: Double, fault: Fault)])
    }

    private let form: Form

    /// One entry for each exchange in order; a nil entry injects nothing, nor does the end of the list.
    ///
    /// - Parameters:
    ///   - faults: the fault of each exchange.
    ///   - repeats: whether the list starts again at its end; false by default.
    public static func list(_ faults: [Fault?], repeats: Bool = false) -> FaultPlan {
        FaultPlan(form: .list(faults, repeats: repeats))
    }

    /// Each exchange gets one of these faults with its share, from 0 to 1, or none; shares beyond a total of 1 are cut.
    ///
    /// The fault of an exchange depends only on the seed and the exchange's number, on every platform.
    public static func chance(seed: UInt64, _ faults: [(share: Double, fault: Fault)]) -> FaultPlan {
        FaultPlan(form: .chance(seed: seed, faults))
    }

    /// The fault of an exchange; nil for none.
    ///
    /// - Parameter number: its number among the exchanges that the plan applies to; the first is 1.
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

/// A response body that breaks off after a number of bytes, as on a lost connection.
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
