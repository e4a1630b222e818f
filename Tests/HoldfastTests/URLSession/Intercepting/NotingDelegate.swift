// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Notes what a session tells its delegate, in order.
final class NotingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    let ended = CountWatch()
    private let noted = Mutex<[String]>([])

    var notes: [String] { noted.withLock { $0 } }

    private func note(_ text: String) {
        noted.withLock { $0.append(text) }
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response \((response as? HTTPURLResponse)?.statusCode ?? 0) of \(response.expectedContentLength)")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data \(String(decoding: data, as: UTF8.self))")
    }

    func urlSession(
        _ session: URLSession,
        downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        note("file \((try? Data(contentsOf: location)).map { String(decoding: $0, as: UTF8.self) } ?? "unreadable")")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(error.map { "error \(($0 as? URLError)?.code.rawValue ?? 0)" } ?? "end")
        ended.increment()
    }
}
