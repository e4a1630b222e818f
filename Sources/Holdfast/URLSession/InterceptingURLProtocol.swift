// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
internal import Foundation
internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Loads a session's requests through the pipeline that belongs to its class.
class InterceptingURLProtocol: URLProtocol {
    private let load = InterceptedLoad()
    /// Loads what a pipeline cannot, in place of this one.
    private var standIn: URLProtocol?

    override class func canInit(with request: URLRequest) -> Bool {
        InterceptionRegistry.shared.interception(of: self)?.takes(request) ?? false
    }

    override class func canInit(with task: URLSessionTask) -> Bool {
        // Requests that our transport sends through somebody's session have already been through its pipeline. Linux never asks
        // this.
        guard !(task.delegate is URLSessionBridge), let request = task.currentRequest else { return false }
        return canInit(with: request)
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        if let standIn { return standIn.startLoading() }
        switch load.start() {
        case .begin: begin()
        case .deliver(let deliveries): deliver(deliveries)
        }
    }

    override func stopLoading() {
        if let standIn { return standIn.stopLoading() }
        #if canImport(Darwin)
            load.stop()
        #else
            // Foundation on Linux stops a protocol when its task is suspended and starts it again when it is resumed. Stop and
            // start may come in the wrong order while it asks its cache, so the task's state decides: one that runs has been
            // resumed. A cancelled task says so before the protocol is stopped.
            switch task?.state {
            case .running: break
            case .suspended: load.pause()
            default: load.stop()
            }
        #endif
    }

    private func begin() {
        let interception = InterceptionRegistry.shared.interception(of: type(of: self))
        #if canImport(Darwin)
            guard let interception else { return fail() }
            let thread = LoadingThread { [weak self] in self?.deliver(self?.load.take() ?? []) }
            load.begin(request, interception: interception) { thread.callBack() }
        #else
            guard let interception, let task, isLoadable(task) else { return loadWithoutUs(interception) }
            // Resuming a task again starts its protocol again, on the session's queue. There is no other way onto that queue, which
            // owns everything that Foundation's client reads and writes.
            load.begin(request, interception: interception) { task.resume() }
        #endif
    }

    private func deliver(_ deliveries: [LoadDelivery]) {
        for delivery in deliveries {
            switch delivery {
            case .response(let response):
                client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            case .data(let data): client?.urlProtocol(self, didLoad: data)
            case .end: client?.urlProtocolDidFinishLoading(self)
            case .failure(let error): client?.urlProtocol(self, didFailWithError: error)
            }
        }
    }

    private func fail() {
        let words =
            "This task cannot be loaded through an intercepting configuration; "
            + "use pipeline.download(for:), pipeline.upload(for:from:) or a session without interception."
        client?.urlProtocol(
            self,
            didFailWithError: URLError(.unsupportedURL, userInfo: [NSLocalizedDescriptionKey: words])
        )
    }

    #if !canImport(Darwin)
        /// Whether a pipeline can load the task: Foundation on Linux shows a protocol nothing of an upload, and accepts a download
        /// only from its own protocol.
        private func isLoadable(_ task: URLSessionTask) -> Bool {
            type(of: task) == URLSessionDataTask.self && !(task.delegate is URLSessionBridge)
        }

        /// Loads as the session would have without us: with the next class. Its instance is made with this protocol's task, and
        /// calls the client for itself.
        private func loadWithoutUs(_ interception: Interception?) {
            let classes =
                interception?.settings.following
                ?? (URLSessionConfiguration.default.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
            guard let task, let next = classes.first(where: { $0.canInit(with: request) }) else { return fail() }
            let standIn = next.init(task: task, cachedResponse: cachedResponse, client: nil)
            self.standIn = standIn
            standIn.startLoading()
        }
    #endif
}

/// Loads one request through a pipeline, between the loading system's thread and the pipeline's task.
///
/// The task never touches the protocol or its client: it leaves deliveries here and makes the loading system call the protocol on
/// its own thread, where start, stop and all calls to the client happen one after another. So nothing can be delivered after a
/// stop, and no lock is held during a call to the client.
final class InterceptedLoad: Sendable {
    private struct State {
        var load = LoadState()
        var work: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// See ``LoadState/start()``.
    func start() -> LoadState.Start {
        state.withLock { $0.load.start() }
    }

    /// See ``LoadState/take()``.
    func take() -> [LoadDelivery] {
        state.withLock { $0.load.take() }
    }

    /// See ``LoadState/pause()``.
    func pause() {
        state.withLock { $0.load.pause() }
    }

    /// Ends the load, and the exchange with it.
    func stop() {
        let work = state.withLock { state in
            state.load.stop()
            defer { state.work = nil }
            return state.work
        }
        if let work { InterceptedLoad.cancel(work) }
    }

    /// Cancels on another queue: a transport acts on cancellation at once, and a URLSession that is called on another one's queue
    /// traps on Linux.
    private static func cancel(_ work: Task<Void, Never>) {
        DispatchQueue.global().async { work.cancel() }
    }

    /// Sends the request in a task of its own.
    ///
    /// - Parameter callBack: makes the loading system call the protocol on its own thread; may be called from any.
    func begin(_ request: URLRequest, interception: Interception, callBack: @escaping @Sendable () -> Void) {
        let work = Task {
            do {
                try await run(request, interception: interception, callBack: callBack)
            } catch {
                deliver([.failure(InterceptedLoad.urlError(error))], callBack: callBack)
            }
            state.withLock { $0.work = nil }
        }
        let isOver = state.withLock { state in
            // It may end before it is recorded, and then nobody would remove it.
            if !state.load.isOver { state.work = work }
            return state.load.isOver
        }
        if isOver { InterceptedLoad.cancel(work) }
    }

    private func run(
        _ request: URLRequest,
        interception: Interception,
        callBack: @escaping @Sendable () -> Void
    ) async throws {
        var response = try await interception.send(request)
        response.url = response.url ?? request.url
        guard let head = LoadHead(response).urlResponse else { throw URLError(.badURL) }
        #if canImport(Darwin)
            deliver([.response(head)], callBack: callBack)
            for try await chunk in response.body { deliver([.data(Data(chunk))], callBack: callBack) }
            deliver([.end], callBack: callBack)
        #else
            // Of several pieces, Foundation on Linux gives only the last one to a caller without a delegate.
            let body = try await response.body.data(upTo: interception.bodyLimit)
            deliver([.response(head)] + (body.isEmpty ? [] : [.data(body)]) + [.end], callBack: callBack)
        #endif
    }

    private func deliver(_ deliveries: [LoadDelivery], callBack: @Sendable () -> Void) {
        if state.withLock({ $0.load.add(deliveries) }) { callBack() }
    }

    private static func urlError(_ error: any Error) -> URLError {
        if let error = error as? ServiceError { return error.urlError }
        if let error = error as? URLError { return error }
        if error is CancellationError { return URLError(.cancelled) }
        return URLError(.unknown, userInfo: [NSUnderlyingErrorKey: error])
    }
}

/// A response head in the form in which it is passed to a session.
struct LoadHead: Sendable {
    private var response: Response

    init(_ response: Response) {
        self.response = response
        #if !canImport(Darwin)
            // At the end of a 401 with a Basic challenge, Foundation on Linux would ask for a credential and, without one, cancel
            // the task on the queue that it runs on, which never returns. An empty list element in front (RFC 9110 §5.6.1.2)
            // changes nothing for code that reads the list, and Foundation finds no challenge.
            if response.status == 401, let challenges = response.fields["WWW-Authenticate"] {
                self.response.fields.removeAll("WWW-Authenticate")
                self.response.fields.append("WWW-Authenticate", ", " + challenges)
            }
        #endif
    }

    /// The head; nil without a URL.
    var urlResponse: HTTPURLResponse? { response.makeHTTPURLResponse() }
}

/// What is delivered to the loading system for one request.
enum LoadDelivery: Sendable {
    case response(HTTPURLResponse)
    case data(Data)
    case end
    case failure(URLError)

    var isLast: Bool {
        switch self {
        case .response, .data: false
        case .end, .failure: true
        }
    }
}

/// The state of loading one request; pure, so that its order can be tested without sessions.
///
/// Deliveries are made in order, only between a start and the stop, and none after the last.
struct LoadState: Sendable {
    /// What to do after a start.
    enum Start: Sendable {
        /// Nothing was begun: begin.
        case begin
        /// Give these to the client.
        case deliver([LoadDelivery])
    }

    private enum Phase {
        case idle, loading, over
    }

    private var phase = Phase.idle
    private var isPaused = false
    private var waiting: [LoadDelivery] = []

    init() {}

    /// Whether nothing more will be delivered.
    var isOver: Bool { phase == .over }

    /// The loading system starts the protocol: for the first time, after a pause, or because it was asked to call.
    mutating func start() -> Start {
        isPaused = false
        if phase == .idle {
            phase = .loading
            return .begin
        }
        return .deliver(take())
    }

    /// Adds deliveries; returns whether the loading system must be asked to call.
    mutating func add(_ deliveries: [LoadDelivery]) -> Bool {
        guard phase == .loading else { return false }
        waiting += deliveries
        return !isPaused
    }

    /// What must be delivered now, once.
    mutating func take() -> [LoadDelivery] {
        guard phase == .loading, !isPaused else { return [] }
        let taken = waiting
        waiting = []
        if taken.last?.isLast == true { phase = .over }
        return taken
    }

    /// The task was suspended: deliveries wait for it.
    mutating func pause() {
        isPaused = true
    }

    /// The task was cancelled, or is complete: nothing is delivered from now on.
    mutating func stop() {
        phase = .over
        waiting = []
    }
}

#if canImport(Darwin)
    /// The thread that a protocol was started on, on Apple systems: its client must be called there and nowhere else.
    ///
    /// Linux has no such thread: there, a protocol is called on the queue of its session.
    final class LoadingThread: Sendable {
        // Proof: `loop` is used only for `CFRunLoopPerformBlock` and `CFRunLoopWakeUp`, which may be called from any thread.
        // `modes` is an immutable array of strings. `action` is made on the loop's thread and called only in blocks that the loop
        // performs there, so everything that it touches stays on that thread. None is changed after `init`.
        private nonisolated(unsafe) let loop: CFRunLoop
        private nonisolated(unsafe) let modes: CFArray
        private nonisolated(unsafe) let action: () -> Void

        /// Made on the thread itself.
        init(_ action: @escaping () -> Void) {
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            // The mode that the loop runs in now may not be one of the common ones.
            let names: [CFRunLoopMode?] = [CFRunLoopMode.commonModes, CFRunLoopCopyCurrentMode(loop)]
            self.loop = loop
            modes = NSArray(array: names.compactMap { $0?.rawValue }) as CFArray
            self.action = action
        }

        /// Runs the action on the thread, after earlier requests; from any thread.
        func callBack() {
            CFRunLoopPerformBlock(loop, modes) { self.action() }
            CFRunLoopWakeUp(loop)
        }
    }
#endif
