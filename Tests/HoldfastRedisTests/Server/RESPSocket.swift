// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    import Foundation
    import Synchronization

    #if canImport(Darwin)
        import Darwin
    #else
        import Glibc
    #endif

    /// A blocking connection to a Redis, for threads of their own.
    final class RESPSocket: Sendable {
        indirect enum Reply: Equatable {
            case text(String)
            case number(Int)
            case none
            case failure(String)
            case list([Reply])
        }

        private let descriptor: Int32
        private let buffer = Mutex<[UInt8]>([])

        init?(port: Int) {
            #if canImport(Darwin)
                let descriptor = socket(AF_INET, SOCK_STREAM, 0)
            #else
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            #endif
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(UInt16(port).bigEndian)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let code = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard code == 0 else {
                close(descriptor)
                return nil
            }
            self.descriptor = descriptor
        }

        deinit { close(descriptor) }

        /// Ends reads that are under way.
        func hangUp() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

        func send(_ words: [String]) {
            var text = "*\(words.count)\r\n"
            for word in words { text += "$\(word.utf8.count)\r\n\(word)\r\n" }
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                guard count > 0 else { return }
                bytes = bytes.dropFirst(count)
            }
        }

        /// The next reply; nil once the connection is over.
        func receive() -> Reply? {
            guard let line = line(), let kind = line.first else { return nil }
            let rest = String(line.dropFirst())
            switch kind {
            case "+": return .text(rest)
            case "-": return .failure(rest)
            case ":": return .number(Int(rest) ?? 0)
            case "$":
                guard let count = Int(rest), count >= 0 else { return Reply.none }
                return bytes(count + 2).map { .text(String(decoding: $0.dropLast(2), as: UTF8.self)) }
            default:
                var list: [Reply] = []
                for _ in 0..<(Int(rest) ?? 0) {
                    guard let reply = receive() else { return nil }
                    list.append(reply)
                }
                return .list(list)
            }
        }

        private func line() -> String? {
            while true {
                let line: String? = buffer.withLock { buffer in
                    guard let end = buffer.firstIndex(of: 13), end + 1 < buffer.count else { return nil }
                    defer { buffer.removeFirst(end + 2) }
                    return String(decoding: buffer[..<end], as: UTF8.self)
                }
                if let line { return line }
                guard more() else { return nil }
            }
        }

        private func bytes(_ count: Int) -> [UInt8]? {
            while buffer.withLock({ $0.count < count }) {
                guard more() else { return nil }
            }
            return buffer.withLock { buffer in
                defer { buffer.removeFirst(count) }
                return Array(buffer[..<count])
            }
        }

        private func more() -> Bool {
            var chunk = [UInt8](repeating: 0, count: 4_096)
            let count = chunk.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            buffer.withLock { $0 += chunk[..<count] }
            return true
        }
    }
#endif
