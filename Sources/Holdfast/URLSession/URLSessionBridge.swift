// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
internal import Foundation
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The delegate of a session, or of one task of somebody else's session: passes events to the exchange that they belong to.
final class URLSessionBridge: NSObject, URLSessionDataDelegate, Sendable {
    private let exchanges = Mutex<[Int: URLSessionExchange]>([:])

    /// Sends the events of `task` to `exchange`, until the task is complete.
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
        // Only the pipeline follows redirects: without a new request, the 3xx itself is returned.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(Darwin)
            // Credentials are the pipeline's task: a 401 is returned, and challenges of TLS and proxies are left to the system.
            let space = challenge.protectionSpace
            let methods = [
                NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodNTLM,
                NSURLAuthenticationMethodNegotiate, NSURLAuthenticationMethodDefault,
            ]
            let isOrigin = !space.isProxy() && methods.contains(space.authenticationMethod)
            if isOrigin { return completionHandler(.rejectProtectionSpace, nil) }
            // A task's delegate is called before its session's, which may have stricter rules for certificates than the system.
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
            // Foundation on Linux challenges when the whole 401 has arrived; default handling would never end, and rejecting
            // cancels. So the exchange ends here, successfully, before its task ends by cancellation.
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
            // libcurl asks for the content again if a reused connection broke before any response, to send the request a second
            // time. Whether that is safe is for the pipeline to decide, and without content to send again, Foundation would wait
            // forever, so the exchange ends here. Content that is known to have left may not have been reported yet by the delegate's
            // queue.
            if let exchange = exchange(of: task) {
                exchange.receivedProgress(sent: task.countOfBytesSent, of: task.countOfBytesExpectedToSend)
                exchange.receivedStaleConnection()
            }
            completionHandler(nil)
        }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let number = task.taskIdentifier
        let exchange = exchanges.withLock { $0.removeValue(forKey: number) }
        #if canImport(Darwin)
            exchange?.receivedEnd(error)
        #else
            // Foundation on Linux does not report the head of a redirect until it has found its target, and never if there is no
            // Location. The task has it.
            exchange?.receivedEnd(error, lateHead: error == nil ? task.response : nil)
        #endif
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

/// Runs the calls that make, start, cancel and end tasks, in their order.
///
/// On Linux, each of them waits for the one queue on which Foundation reads for all sessions of the process, and a long response
/// head can occupy that for seconds. So they run on a thread that nothing else waits for: neither deadlines nor the cooperative pool.
enum FoundationQueue {
    #if !canImport(Darwin)
        private static let queue = DispatchQueue(label: "holdfast.url-session.tasks", qos: .userInitiated)
    #endif

    static func perform(_ call: @escaping @Sendable () -> Void) {
        #if canImport(Darwin)
            call()
        #else
            queue.async(execute: call)
        #endif
    }
}

#if !canImport(Darwin)
    internal import Foundation

    /// The queue of a session's delegate, which slows Foundation down while too much is waiting in it.
    ///
    /// Foundation on Linux reads from the network as fast as data comes and adds an operation for each 16 KiB, without a limit:
    /// with a fast connection, hundreds of megabytes wait in memory for a delegate that writes them to a file. But it adds them on
    /// the queue that it reads on, so while ``addOperation(_:)`` does not return, nothing is read, and the servers wait.
    ///
    /// All sessions of the process are read on that one queue, and tasks are made and started on it. So it waits only for the
    /// delegate's own work, which is at most a write to a file, and never for a reader.
    ///
    /// Proof: the operation queue is thread-safe by itself, and what is added here changes only under `condition`.
    final class DelegateQueue: OperationQueue, @unchecked Sendable {
        /// How many operations may wait, of at most 16 KiB each.
        private static let longest = 128
        /// How long one operation is held back.
        private static let patience = 0.1

        private let condition = NSCondition()
        private var waiting = 0
        /// The delegate has done nothing for so long that the queue stops waiting until it does.
        private var isStuck = false

        override init() {
            super.init()
            name = "holdfast.url-session"
            maxConcurrentOperationCount = 1
            qualityOfService = .userInitiated
        }

        override func addOperation(_ block: @Sendable @escaping () -> Void) {
            // Code on this queue cannot wait for it.
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
