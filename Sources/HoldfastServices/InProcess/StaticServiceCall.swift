// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Asks a service without instances for one response.
struct StaticServiceCall {
    let type: any ServiceProtocol.Type
    let configuration: ServiceRouter.Configuration
    let threads: ServiceThreads

    func response(to request: URLRequest, url: URL, body: RequestBody, context: CallContext) async throws -> Response {
        let request = try await request.carrying(body, upTo: configuration.requestContentLimit)
        guard let template = HTTPURLResponse.made(url, status: .ok) else {
            throw ServiceError.badRequest("No response can be made for this URL, because it is invalid.")
        }
        let exchange = ServiceExchange(
            serviceIdentifier: type.serviceIdentifier,
            unreadLimit: configuration.unreadLimit
        ) { [onContractViolation = configuration.onContractViolation] violation in
            context.emit(.serviceContractViolated) { event in
                event.attempt = context.attempt
                event.error = violation
                event.detail = violation.description
            }
            onContractViolation?(violation)
        }
        begin(request, template: template, exchange: exchange)
        return try await exchange.response(to: url)
    }

    /// Calls the service outside the pool that runs tasks: it may block, and what it returns is visible at once.
    ///
    /// Not part of ``response(to:url:body:context:)``, which would hold the responder while it waits for the service.
    private func begin(_ request: URLRequest, template: HTTPURLResponse, exchange: ServiceExchange) {
        let responder = ServiceResponder(exchange)
        threads.run { [type] in
            // A caller that left while the call waited for a thread needs no response.
            guard !exchange.isLeft else { return }
            type.performRequest(
                request,
                response: template,
                responseReturn: { responder.returnResponse($0) },
                dataReturn: { responder.returnData($0) },
                requestComplete: { responder.completeRequest() }
            )
        }
    }
}

extension URLRequest {
    /// The same request with the content in `httpBody`, unless the request has its own stream.
    fileprivate func carrying(_ body: RequestBody, upTo limit: Int) async throws -> URLRequest {
        if case .requestStream = body.form { return self }
        var request = self
        request.httpBodyStream = nil
        request.httpBody = nil
        if case .none = body.form { return request }
        var content: ByteChunk?
        do {
            content = try await body.collect(from: self, upTo: limit)
        } catch let error as ServiceError where error.code == .bodyTooLarge {
            // Refused below, like bytes in memory that are too many.
        }
        guard let content, content.count <= limit else {
            throw ServiceError(
                .bodyTooLarge,
                "The request's content is longer than \(limit) bytes; raise the router's requestContentLimit, or answer it by an "
                    + "InProcessService, which reads it as a stream.",
                progress: .notSent
            )
        }
        request.httpBody = content.data
        return request
    }
}

/// Runs work that may block: each piece on its own thread up to a limit, the rest in order of arrival.
///
/// Dispatch queues are not used because they stop at about 255 threads for the whole process, and everything after that waits
/// until a blocked one is done.
final class ServiceThreads: Sendable {
    private struct State {
        var running = 0
        var waiting = Queue<@Sendable () -> Void>()
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) { self.limit = max(limit, 1) }

    func run(_ work: @escaping @Sendable () -> Void) {
        let isDue = state.withLock { state in
            state.waiting.append(work)
            guard state.running < limit else { return false }
            state.running += 1
            return true
        }
        guard isDue else { return }
        // It takes each piece itself, so that it holds none that is done: the call of one may wait for its release.
        let thread = Thread {
            while let work = self.next() { work() }
        }
        thread.name = "holdfast.service"
        thread.start()
    }

    /// The next piece for a thread; nil if there is none and the thread ends.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.running -= 1 }
            return next
        }
    }
}

/// First in, first out; what is taken is released at once, and taking is quick however many there are.
struct Queue<Element> {
    private var incoming: [Element] = []
    /// The oldest is last.
    private var outgoing: [Element] = []

    mutating func append(_ element: Element) { incoming.append(element) }

    mutating func popFirst() -> Element? {
        if outgoing.isEmpty {
            outgoing = incoming.reversed()
            incoming = []
        }
        return outgoing.popLast()
    }

    mutating func takeAll() -> [Element] {
        defer { self = Queue() }
        return outgoing.reversed() + incoming
    }
}
