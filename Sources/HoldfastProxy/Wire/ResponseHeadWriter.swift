// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import HoldfastSemantics
    package import NIOCore

    /// Writes heads of HTTP/1.1 messages, in one pass into one buffer.
    package enum ResponseHeadWriter {
        /// The server's own framing fields, which replace those in the fields.
        package struct Framing: Sendable, Hashable {
            /// How the content ends.
            package enum Content: Sendable, Hashable {
                /// No field: there is no content, or it ends with the connection.
                case unsaid
                /// `Content-Length` with this number of bytes.
                case length(Int)
                /// `Transfer-Encoding: chunked`.
                case chunked
            }

            /// The Connection field; none if it is not needed.
            package enum Connection: Sendable, Hashable {
                case unsaid
                case close
                case keepAlive
                case upgrade
            }

            package var content: Content
            package var connection: Connection

            package init(_ content: Content, connection: Connection = .unsaid) {
                self.content = content
                self.connection = connection
            }
        }

        /// Writes a status line, the field lines except Connection, Transfer-Encoding and Content-Length, those of the
        /// framing, and the empty line.
        ///
        /// - Parameters:
        ///   - room: how many bytes the caller will write after the head, so that the buffer grows only once.
        package static func write(
            _ status: StatusCode,
            fields: HeaderFields,
            framing: Framing,
            room: Int = 0,
            to buffer: inout ByteBuffer
        ) {
            // Room for the status line and the server's own lines.
            var size = 160
            for line in fields { size += line.name.rawName.utf8.count + line.value.utf8.count + 4 }
            buffer.reserveCapacity(minimumWritableBytes: size + room)
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { target in
                guard let base = target.baseAddress else { return 0 }
                var writer = Writer(base: base)
                writer.write("HTTP/1.1 ")
                writer.write(status.rawValue)
                writer.write(" ")
                writer.write(ReasonPhrase.of(status))
                writer.endLine()
                for line in fields {
                    switch line.name {
                    case .connection, .transferEncoding, .contentLength: continue
                    default: break
                    }
                    writer.write(line.name.rawName)
                    writer.write(": ")
                    writer.write(line.value)
                    writer.endLine()
                }
                writer.write(framing)
                writer.endLine()
                return writer.count
            }
        }

        private struct Writer {
            let base: UnsafeMutableRawPointer
            var count = 0

            init(base: UnsafeMutableRawPointer) {
                self.base = base
            }

            mutating func write(_ text: StaticString) {
                (base + count).copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
                count += text.utf8CodeUnitCount
            }

            mutating func write(_ text: String) {
                count += FieldText.write(text, to: base + count)
            }

            mutating func write(_ number: Int) {
                var divisor = 1
                while number / divisor >= 10 { divisor *= 10 }
                while divisor > 0 {
                    let digit = UInt8(truncatingIfNeeded: number / divisor % 10)
                    base.storeBytes(of: UInt8(ascii: "0") + digit, toByteOffset: count, as: UInt8.self)
                    count += 1
                    divisor /= 10
                }
            }

            mutating func endLine() {
                base.storeBytes(of: UInt8(ascii: "\r"), toByteOffset: count, as: UInt8.self)
                base.storeBytes(of: UInt8(ascii: "\n"), toByteOffset: count + 1, as: UInt8.self)
                count += 2
            }

            mutating func write(_ framing: Framing) {
                switch framing.content {
                case .unsaid: break
                case .length(let length):
                    write("Content-Length: ")
                    write(max(length, 0))
                    endLine()
                case .chunked:
                    write("Transfer-Encoding: chunked")
                    endLine()
                }
                switch framing.connection {
                case .unsaid: break
                case .close:
                    write("Connection: close")
                    endLine()
                case .keepAlive:
                    write("Connection: keep-alive")
                    endLine()
                case .upgrade:
                    write("Connection: Upgrade")
                    endLine()
                }
            }
        }
    }

    /// The reason phrases of status codes, which have no meaning (RFC 9112 §4).
    enum ReasonPhrase {
        static func of(_ status: StatusCode) -> StaticString {
            switch status.rawValue {
            case 100: "Continue"
            case 101: "Switching Protocols"
            case 102: "Processing"
            case 103: "Early Hints"
            case 200: "OK"
            case 201: "Created"
            case 202: "Accepted"
            case 203: "Non-Authoritative Information"
            case 204: "No Content"
            case 205: "Reset Content"
            case 206: "Partial Content"
            case 300: "Multiple Choices"
            case 301: "Moved Permanently"
            case 302: "Found"
            case 303: "See Other"
            case 304: "Not Modified"
            case 307: "Temporary Redirect"
            case 308: "Permanent Redirect"
            case 400: "Bad Request"
            case 401: "Unauthorized"
            case 403: "Forbidden"
            case 404: "Not Found"
            case 405: "Method Not Allowed"
            case 408: "Request Timeout"
            case 409: "Conflict"
            case 410: "Gone"
            case 411: "Length Required"
            case 412: "Precondition Failed"
            case 413: "Content Too Large"
            case 414: "URI Too Long"
            case 415: "Unsupported Media Type"
            case 416: "Range Not Satisfiable"
            case 417: "Expectation Failed"
            case 421: "Misdirected Request"
            case 425: "Too Early"
            case 426: "Upgrade Required"
            case 428: "Precondition Required"
            case 429: "Too Many Requests"
            case 431: "Request Header Fields Too Large"
            case 500: "Internal Server Error"
            case 501: "Not Implemented"
            case 502: "Bad Gateway"
            case 503: "Service Unavailable"
            case 504: "Gateway Timeout"
            case 505: "HTTP Version Not Supported"
            default: ""
            }
        }
    }
#endif
