// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
internal import Foundation
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The delegate of a session, or of one task of somebody else's session: hands what happens to the exchange it belongs to.
final class URLSessionBridge: NSObject, URLSessionDataDelegate, Sendable {
    private let exchanges = Mutex<[Int: URLSessionExchange]>([:])

    /// Sends what happens to `task` to `exchange`, until the task is complete.
    func attach(_ exchange: URLSessionExchange, to task: URLSessionTask) {
        let number = task.taskIdentifier
        exchanges.withLock { $0[number] = exchange }
    }

    private func exchange(of task: URLSessionTask) -> URLSessionExchange? {
        let number = task.taskIdentifier
        return exchanges.withLock { $0[number] }
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        exchange(of: dataTask)?.received(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(of: dataTask)?.received(data)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        exchange(of: task)?.receivedProgress(sent: totalBytesSent, of: totalBytesExpectedToSend)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        #if !canImport(Darwin)
            if exchange(of: task)?.beginsRedirect() == false { return }
        #endif
        // Nothing follows a redirect but the pipeline: without a new request the 3xx itself is handed up.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(Darwin)
            // Credentials are the pipeline's: a 401 is handed up, and what TLS and proxies ask is left to the system.
            let space = challenge.protectionSpace
            let methods = [
                NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodNTLM,
                NSURLAuthenticationMethodNegotiate, NSURLAuthenticationMethodDefault,
            ]
            let isOrigin = !space.isProxy() && methods.contains(space.authenticationMethod)
            if isOrigin { return completionHandler(.rejectProtectionSpace, nil) }
            // A task's delegate stands before its session's, which may hold certificates to more than the system does.
            let answer = completionHandler
            if let delegate = session.delegate, delegate !== self {
                if delegate.urlSession?(session, didReceive: challenge, completionHandler: answer) != nil { return }
                let other = delegate as? any URLSessionTaskDelegate
                if let other,
                    other.urlSession?(session, task: task, didReceive: challenge, completionHandler: answer) != nil
                {
                    return
                }
            }
            answer(.performDefaultHandling, nil)
        #else
            // Foundation on Linux challenges when the 401 has come whole; default handling would never end, and rejecting
            // cancels. So the exchange ends here, well, before its task ends by cancellation.
            if let exchange = exchange(of: task) {
                if let response = challenge.failureResponse { exchange.received(response) }
                exchange.receivedEnd(nil)
            }
            completionHandler(.cancelAuthenticationChallenge, nil)
        #endif
    }

    #if !canImport(Darwin)
        func urlSession(
            _ session: URLSession,
            task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) {
            // libcurl asks for the content once more when a connection it used again broke before any answer, to send the
            // request a second time. Whether that is safe is the pipeline's to judge, and with no content to send again
            // Foundation would wait for ever, so the exchange ends here; on another queue, because this one is the session's
            // own, where cancelling a task traps. What is known to have left may still wait in the delegate's queue.
            if let exchange = exchange(of: task) {
                exchange.receivedProgress(sent: task.countOfBytesSent, of: task.countOfBytesExpectedToSend)
                DispatchQueue.global().async { exchange.receivedStaleConnection() }
            }
            completionHandler(nil)
        }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let number = task.taskIdentifier
        let exchange = exchanges.withLock { $0.removeValue(forKey: number) }
        #if !canImport(Darwin)
            // Foundation on Linux keeps the head of a redirect to itself until it has found where it leads, and for good when
            // there is no Location. The task has it.
            if error == nil, let response = task.response { exchange?.received(response) }
        #endif
        exchange?.receivedEnd(error)
    }

    #if canImport(Darwin)
        func urlSession(
            _ session: URLSession,
            task: URLSessionTask,
            didFinishCollecting metrics: URLSessionTaskMetrics
        ) {
            guard let last = metrics.transactionMetrics.last else { return }
            exchange(of: task)?.receivedConnectionReuse(last.isReusedConnection)
        }
    #endif
}

#if !canImport(Darwin)
    internal import Foundation

    /// The queue of a session's delegate, which holds Foundation back while too much lies in it.
    ///
    /// Foundation on Linux reads from the network as fast as it comes and adds an operation for each 16 KiB, without a bound: over a
    /// fast link hundreds of megabytes wait in memory for a delegate that writes them to a file. It adds them on the queue that it
    /// reads on, though, so while ``addOperation(_:)`` does not return nothing is read, and the servers wait.
    ///
    /// All sessions of the process are read on that one queue, and tasks are made and begun on it, on threads of the cooperative pool
    /// too. So nothing is held back but for what the delegate itself has yet to do, which is at most a write to a file, and never for
    /// a reader: that would have to wait for a thread that waits for it.
    ///
    /// Proof: the operation queue is thread-safe by itself, and what is added here changes under `condition` alone.
    final class DelegateQueue: OperationQueue, @unchecked Sendable {
        /// How many operations may wait, of 16 KiB at most each.
        private static let longest = 128
        /// For how long one operation is held back.
        private static let patience = 0.1

        private let condition = NSCondition()
        private var waiting = 0
        /// The delegate has done nothing for so long that it is not waited for until it does.
        private var isStuck = false

        override init() {
            super.init()
            name = "holdfast.url-session"
            maxConcurrentOperationCount = 1
            qualityOfService = .userInitiated
        }

        override func addOperation(_ block: @Sendable @escaping () -> Void) {
            // What runs on this queue cannot wait for it.
            if OperationQueue.current !== self { hold() }
            condition.withLock { waiting += 1 }
            super.addOperation {
                block()
                self.condition.withLock {
                    self.waiting -= 1
                    self.isStuck = false
                    self.condition.broadcast()
                }
            }
        }

        private func hold() {
            condition.withLock {
                guard waiting >= DelegateQueue.longest, !isStuck else { return }
                let end = Date(timeIntervalSinceNow: DelegateQueue.patience)
                while waiting >= DelegateQueue.longest {
                    guard condition.wait(until: end) else {
                        isStuck = true
                        return
                    }
                }
            }
        }
    }
#endif
