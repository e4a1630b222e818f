// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics
    package import NIOCore

    /// Reads the head of one request from bytes that arrive in pieces, in linear time however they are cut.
    package struct RequestHeadParser: Sendable {
        private let limits: HeadLimits
        private var scanner: HeadScanner
        private var gathered: ByteBuffer?

        /// Creates a parser for the next request of a connection.
        package init(limits: HeadLimits = HeadLimits()) {
            self.limits = limits
            scanner = HeadScanner(limits: limits, rules: .request)
        }

        /// Whether nothing of a request has arrived, except for an empty line.
        package var isUntouched: Bool { scanner.isUntouched }

        /// Continues with new bytes.
        ///
        /// - Parameter bytes: the new bytes; once a head is complete, what follows it remains there.
        /// - Returns: the request; nil if its head is incomplete.
        /// - Throws: the fault that the client gets as response before the connection is closed.
        package mutating func parse(_ bytes: inout ByteBuffer) throws(MessageFault) -> RequestMessage? {
            var all: ByteBuffer
            if let former = gathered {
                gathered = nil
                all = former
                all.writeBuffer(&bytes)
            } else {
                all = bytes
            }
            let (end, message) = try read(all)
            guard let end, let message else {
                gathered = all
                bytes = ByteBuffer()
                return nil
            }
            all.moveReaderIndex(forwardBy: end)
            bytes = all
            return message
        }

        private mutating func read(_ all: ByteBuffer) throws(MessageFault) -> (Int?, RequestMessage?) {
            var outcome: Result<(Int?, RequestMessage?), MessageFault> = .success((nil, nil))
            all.withUnsafeReadableBytes { view in
                do throws(MessageFault) {
                    guard let end = try scanner.end(in: view) else { return }
                    let head = UnsafeRawBufferPointer(rebasing: view[scanner.start..<end])
                    outcome = .success((end, try RequestMessage(head, limits: limits)))
                } catch {
                    outcome = .failure(error)
                }
            }
            return try outcome.get()
        }
    }

    /// The head of a request as it arrived (RFC 9112 §3).
    package struct RequestMessage: Sendable, Hashable {
        /// The method: any token.
        package let method: RequestMethod
        /// The target.
        package let target: RequestTarget
        /// The version.
        package let version: HTTPVersion
        /// The field lines.
        package let fields: HeaderFields
        let framing: RequestFraming

        /// Reads a complete head.
        ///
        /// - Parameter bytes: from the request line through the empty line, as ``HeadScanner`` found them.
        /// - Throws: the fault that the client gets as response.
        package init(_ bytes: UnsafeRawBufferPointer, limits: HeadLimits = HeadLimits()) throws(MessageFault) {
            var lineEnd = 0
            while lineEnd < bytes.count, bytes[lineEnd] != UInt8(ascii: "\n") { lineEnd += 1 }
            guard lineEnd < bytes.count, lineEnd > 0, bytes[lineEnd - 1] == UInt8(ascii: "\r") else {
                throw MessageFault("The request line does not end with CR LF.")
            }
            let line = UnsafeRawBufferPointer(rebasing: bytes[..<(lineEnd - 1)])
            var methodEnd = 0
            while methodEnd < line.count, FieldLines.isToken(line[methodEnd]) { methodEnd += 1 }
            guard methodEnd > 0, methodEnd < line.count, line[methodEnd] == UInt8(ascii: " ") else {
                throw MessageFault("The request line does not begin with a method and a space.")
            }
            method = RequestMethod(rawValue: FieldText.string(UnsafeRawBufferPointer(rebasing: line[..<methodEnd])))
            guard let space = line.lastIndex(of: UInt8(ascii: " ")), space > methodEnd else {
                throw MessageFault("The request line does not end with a space and a version.")
            }
            version = try RequestMessage.version(UnsafeRawBufferPointer(rebasing: line[(space + 1)...]))
            guard space - methodEnd - 1 <= limits.target else {
                throw MessageFault(414, message: "The request's target is longer than \(limits.target) bytes.")
            }
            target = try RequestTarget(UnsafeRawBufferPointer(rebasing: line[(methodEnd + 1)..<space]), method: method)
            fields = try FieldLines.read(
                UnsafeRawBufferPointer(rebasing: bytes[(lineEnd + 1)...]),
                limits: limits,
                rules: .request
            )
            framing = try RequestFraming(fields, version: version)
        }

        private static func version(_ bytes: UnsafeRawBufferPointer) throws(MessageFault) -> HTTPVersion {
            let isVersion =
                bytes.starts(with: "HTTP/".utf8) && bytes.count == 8 && bytes[5].isDigit
                && bytes[6] == UInt8(ascii: ".") && bytes[7].isDigit
            guard isVersion else { throw MessageFault("The request line does not end with a space and a version.") }
            guard bytes[5] == UInt8(ascii: "1"), bytes[7] <= UInt8(ascii: "1") else {
                throw MessageFault(505, message: "Only HTTP/1.0 and HTTP/1.1 are supported.")
            }
            return bytes[7] == UInt8(ascii: "1") ? .http11 : .http10
        }
    }

    /// The supported versions, with their numbers; closed, because other ones are rejected.
    package enum HTTPVersion: String, Sendable, Hashable {
        /// HTTP/1.0 (RFC 1945).
        case http10 = "1.0"
        /// HTTP/1.1 (RFC 9112).
        case http11 = "1.1"
        /// HTTP/2 (RFC 9113), over TLS.
        case http2 = "2.0"
    }
#endif
