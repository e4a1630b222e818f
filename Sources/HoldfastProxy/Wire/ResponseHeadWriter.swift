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
                writer.write(status == .ok ? "OK" : status.isRegistered ? status.reasonPhrase : "")
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
#endif
