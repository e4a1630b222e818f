// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics

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

        /// Reads a whole head.
        ///
        /// - Parameter bytes: from the request line through the empty line, as ``HeadScanner`` found them.
        /// - Throws: what the client is answered.
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
            method = RequestMessage.method(UnsafeRawBufferPointer(rebasing: line[..<methodEnd]))
            guard let space = line.lastIndex(of: UInt8(ascii: " ")), space > methodEnd else {
                throw MessageFault("The request line does not end with a space and a version.")
            }
            version = try RequestMessage.version(UnsafeRawBufferPointer(rebasing: line[(space + 1)...]))
            guard space - methodEnd - 1 <= limits.target else {
                throw MessageFault(414, "The request's target is longer than \(limits.target) bytes.")
            }
            target = try RequestTarget(UnsafeRawBufferPointer(rebasing: line[(methodEnd + 1)..<space]), method: method)
            fields = try FieldLines.read(
                UnsafeRawBufferPointer(rebasing: bytes[(lineEnd + 1)...]),
                limits: limits,
                rules: .request
            )
            framing = try RequestFraming(fields, version: version)
        }

        private static func method(_ bytes: UnsafeRawBufferPointer) -> RequestMethod {
            RequestMethod(rawValue: FieldText.string(bytes))
        }

        private static func version(_ bytes: UnsafeRawBufferPointer) throws(MessageFault) -> HTTPVersion {
            let isVersion =
                bytes.starts(with: "HTTP/".utf8) && bytes.count == 8 && bytes[5].isDigit
                && bytes[6] == UInt8(ascii: ".") && bytes[7].isDigit
            guard isVersion else { throw MessageFault("The request line does not end with a space and a version.") }
            guard bytes[5] == UInt8(ascii: "1"), bytes[7] <= UInt8(ascii: "1") else {
                throw MessageFault(505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.")
            }
            return bytes[7] == UInt8(ascii: "1") ? .http11 : .http10
        }
    }
#endif
