// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Loads a session's requests through the pipeline that its class stands for.
class InterceptingURLProtocol: URLProtocol {
    private let load = InterceptedLoad()
    /// Loads in place of this one what a pipeline cannot.
    private var standIn: URLProtocol?

    override class func canInit(with request: URLRequest) -> Bool {
        InterceptionRegistry.shared.interception(of: self)?.takes(request) ?? false
    }

    override class func canInit(with task: URLSessionTask) -> Bool {
        // What a transport of ours sends through somebody's session has been through its pipeline. Linux never asks this.
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
            // start may come in the wrong order while it asks its cache, so the task's word counts: one that runs has been
            // resumed. What was cancelled says so before the protocol is stopped.
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
            load.begin(request, interception) { thread.callBack() }
        #else
            guard let interception, let task, isLoadable(task) else { return loadWithoutUs(interception) }
            // A task that is resumed once more starts its protocol once more, on the session's queue. It is the only way onto
            // that queue, and what Foundation's client reads and writes belongs to it.
            load.begin(request, interception) { task.resume() }
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
        /// Whether a pipeline can load the task: Foundation on Linux shows a protocol nothing of what is uploaded, and takes
        /// a download from its own protocol alone.
        private func isLoadable(_ task: URLSessionTask) -> Bool {
            type(of: task) == URLSessionDataTask.self && !(task.delegate is URLSessionBridge)
        }

        /// Loads as the session would have without us: by the class that comes next. It is made with this protocol's task, and
        /// what it tells the client it tells of itself.
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
