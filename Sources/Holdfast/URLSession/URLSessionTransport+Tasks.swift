// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension URLSessionTransport {
    /// The task that sends `upload` and tells `exchange` what happens; traps once the session is invalidated.
    func rawTask(
        for upload: RequestUpload,
        isIdempotent: Bool,
        isDownload: Bool,
        _ exchange: URLSessionExchange
    ) -> URLSessionTask {
        guard let bridge else {
            #if !canImport(Darwin)
                // Somebody's session gives content in one piece.
                if isDownload { return unsharedTask(for: upload, exchange, DelegateQueue()) }
            #endif
            return foreignTask(for: upload, exchange)
        }
        #if !canImport(Darwin)
            if !upload.hasContent, !isIdempotent {
                return unsharedTask(for: upload, exchange, session.delegateQueue)
            }
        #endif
        let task = delegatedTask(for: upload)
        bridge.attach(exchange, to: task)
        return task
    }

    private func delegatedTask(for upload: RequestUpload) -> URLSessionTask {
        #if canImport(Darwin)
            // Never on Linux, where an upload from a file traps when its exchange ends while the file is being read.
            if let file = upload.file { return session.uploadTask(with: upload.request, fromFile: file.url) }
            return session.dataTask(with: upload.request)
        #else
            return session.dataTask(with: upload.streamedRequest)
        #endif
    }

    private func foreignTask(for upload: RequestUpload, _ exchange: URLSessionExchange) -> URLSessionTask {
        let bridge = URLSessionBridge()
        #if canImport(Darwin)
            let task = delegatedTask(for: upload)
        #else
            // A task's delegate is told of neither head nor body on Linux.
            let task = session.dataTask(with: upload.streamedRequest) { data, response, error in
                if let response { exchange.received(response) }
                if let data { exchange.received(whole: data) }
                exchange.receivedEnd(error)
            }
        #endif
        bridge.attach(exchange, to: task)
        task.delegate = bridge
        return task
    }

    #if !canImport(Darwin)
        /// A task on a connection of its own.
        ///
        /// When a connection that it uses again breaks before an answer, libcurl sends a request without content a second time
        /// by itself, whatever the method; on a new connection it does not. What may be sent twice is the pipeline's to judge.
        private func unsharedTask(
            for upload: RequestUpload,
            _ exchange: URLSessionExchange,
            _ queue: OperationQueue
        ) -> URLSessionTask {
            let bridge = URLSessionBridge()
            let single = URLSession(
                configuration: session.configuration,
                delegate: bridge,
                delegateQueue: queue
            )
            let task = single.dataTask(with: upload.streamedRequest)
            bridge.attach(exchange, to: task)
            single.finishTasksAndInvalidate()
            return task
        }
    #endif
}
