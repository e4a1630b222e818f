// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation

@testable import HoldfastTesting

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A client that sends what it is told, well formed or not, and tells all that came.
enum RawClient {
    /// As ``bytes(_:with:)``, as text.
    static func exchange(_ text: String, with server: LoopbackServer, ends: Bool = true) async throws -> String {
        String(decoding: try await bytes(text, with: server, ends: ends), as: UTF8.self)
    }

    /// Sends `text`, ends its own side if it is to, and reads to the end; on a thread that may wait.
    static func bytes(_ text: String, with server: LoopbackServer, ends: Bool = true) async throws -> [UInt8] {
        let port = server.port
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try talk(text, port, ends: ends) })
            }
        }
    }

    private static func talk(_ text: String, _ port: UInt16, ends: Bool) throws -> [UInt8] {
        let socket = LoopbackSocket(adopting: try connected(to: port), stop: LoopbackGate())
        try socket.send(Array(text.utf8))
        if ends { socket.end() }
        var answer: [UInt8] = []
        while let bytes = try socket.receive() { answer += bytes }
        return answer
    }

    private static func connected(to port: UInt16) throws -> Int32 {
        // Glibc alone has an enumeration for the type of a socket.
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let outcome = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
        }
        guard outcome == 0 else { throw LoopbackSocket.Ending.peerClosed }
        return descriptor
    }
}
