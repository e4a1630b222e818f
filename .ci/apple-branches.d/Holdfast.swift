// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// What Foundation has on Apple systems alone, for .ci/apple-branches.

internal import Foundation
internal import FoundationNetworking

extension URLSessionConfiguration {
    var apple_waitsForConnectivity: Bool {
        get { false }
        set { _ = newValue }
    }
}

// Methods that a delegate need not have; each says whether it has.

extension URLSessionDelegate {
    func apple_urlSession(
        _ session: URLSession,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) -> Bool { false }
}

extension URLSessionTaskDelegate {
    func apple_urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) -> Bool { false }
}

// CoreFoundation's run loops, for URLSession/Intercepting/LoadingThread.swift.

final class CFRunLoop {}
typealias CFArray = NSArray

struct CFRunLoopMode {
    static let commonModes = CFRunLoopMode()
    var rawValue: NSString { NSString() }
}

func CFRunLoopGetCurrent() -> CFRunLoop { CFRunLoop() }
func CFRunLoopCopyCurrentMode(_ loop: CFRunLoop) -> CFRunLoopMode? { nil }
func CFRunLoopPerformBlock(_ loop: CFRunLoop, _ modes: CFArray, _ block: @escaping () -> Void) {}
func CFRunLoopWakeUp(_ loop: CFRunLoop) {}
