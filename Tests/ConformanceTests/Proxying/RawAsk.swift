// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy && canImport(HoldfastProxy)
    import Foundation
    import HoldfastSemantics

    #if canImport(Darwin)
        import Darwin
    #elseif canImport(Musl)
        import Musl
    #else
        import Glibc
    #endif
    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// One request as bytes on a connection of its own, and all that comes back on it.
    struct RawAsk: Sendable {
        struct Broken: Error {}

        var method: String
        var target: String
        var fields: [(name: String, value: String)]
        var body: String?

        init(_ request: URLRequest) {
            method = request.httpMethod ?? "GET"
            let url = request.url?.absoluteString ?? ""
            let host = url.firstIndex(of: ":").map { url[$0...].dropFirst(3) } ?? ""
            target = host.firstIndex(of: "/").map { String(host[$0...]) } ?? "/"
            fields = (request.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            body = request.httpBody.map { String(decoding: $0, as: UTF8.self) }
        }

        /// Sends the request, on a thread that may wait, and reads to the end of the connection.
        func answer(from port: Int) async -> ReceivedResponse {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    do {
                        continuation.resume(returning: try read(exchange(port)))
                    } catch {
                        var failed = ReceivedResponse()
                        failed.failure = "\(error)"
                        continuation.resume(returning: failed)
                    }
                }
            }
        }

        private var bytes: [UInt8] {
            var lines = ["\(method) \(target) HTTP/1.1", "Host: proxy.example", "Connection: close"]
            lines += fields.map { "\($0.name): \($0.value)" }
            if let body { lines.append("Content-Length: \(body.utf8.count)") }
            return Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")).utf8)
        }

        private func exchange(_ port: Int) throws -> [UInt8] {
            #if canImport(Glibc)
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            #else
                let descriptor = socket(AF_INET, SOCK_STREAM, 0)
            #endif
            guard descriptor >= 0 else { throw Broken() }
            defer { close(descriptor) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) == 0 }
            }
            guard isConnected else { throw Broken() }
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                guard count > 0 else { throw Broken() }
                rest = rest.dropFirst(count)
            }
            var answer: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 16_384)
            while true {
                let count = buffer.withUnsafeMutableBytes { systemRead(descriptor, $0) }
                guard count >= 0 else { throw Broken() }
                if count == 0 { return answer }
                answer += buffer[..<count]
            }
        }

        /// The answer that the bytes are: interim heads, a head, and as much content as it announces.
        private func read(_ bytes: [UInt8]) throws -> ReceivedResponse {
            var rest = bytes[...]
            var received = ReceivedResponse()
            while true {
                let head = try RawAsk.head(&rest)
                guard head.status >= 200 else {
                    received.interim.append(
                        InterimHead(
                            status: head.status,
                            fields: head.fields.map { [$0.name.rawName.lowercased(), $0.value] }
                        )
                    )
                    continue
                }
                received.status = head.status
                received.fields = head.fields
                break
            }
            let hasNone = method == "HEAD" || received.status == 204 || received.status == 304
            if let length = received.fields[.contentLength].flatMap({ Int($0) }), !hasNone {
                guard rest.count == length else { throw Broken() }
            } else if received.fields.contains(.transferEncoding) {
                // Content whose length is known bears it (PROXY-REQUIREMENTS A7), and every other one here ends with its connection.
                rest = try RawAsk.unchunked(rest)
            }
            guard !hasNone || rest.isEmpty else { throw Broken() }
            // What belongs to the connection between the client and the proxy is none of the case's.
            for name in [FieldName.connection, .transferEncoding] { received.fields.removeAll(name) }
            received.body = String(decoding: rest, as: UTF8.self)
            return received
        }

        private static func head(_ rest: inout ArraySlice<UInt8>) throws -> (status: Int, fields: HeaderFields) {
            let words = try line(&rest).split(separator: " ", maxSplits: 2)
            guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]) else { throw Broken() }
            var fields = HeaderFields()
            while true {
                let line = try line(&rest)
                if line.isEmpty { return (status, fields) }
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                guard parts.count == 2, fields.append(rawName: parts[0], value: parts[1]) else { throw Broken() }
            }
        }

        private static func unchunked(_ bytes: ArraySlice<UInt8>) throws -> ArraySlice<UInt8> {
            var (rest, content) = (bytes, [UInt8]())
            while true {
                guard let size = Int(try line(&rest), radix: 16), rest.count >= size else { throw Broken() }
                content += rest.prefix(size)
                rest = rest.dropFirst(size)
                guard try line(&rest).isEmpty else { throw Broken() }
                if size == 0 { return content[...] }
            }
        }

        private static func line(_ rest: inout ArraySlice<UInt8>) throws -> String {
            guard let end = rest.firstIndex(of: 0x0A), end > rest.startIndex, rest[end - 1] == 0x0D else {
                throw Broken()
            }
            defer { rest = rest[(end + 1)...] }
            return String(decoding: rest[..<(end - 1)], as: UTF8.self)
        }
    }

    /// The system's function, which the method of the same name hides.
    private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        read(descriptor, buffer.baseAddress, buffer.count)
    }
#endif
