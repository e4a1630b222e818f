// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import NIOCore

    /// Reads the head of one request from bytes that arrive piecemeal, in linear time however they are cut.
    package struct RequestHeadParser: Sendable {
        private let limits: HeadLimits
        private var scanner: HeadScanner
        private var gathered: ByteBuffer?

        /// A parser for the next request of a connection.
        package init(limits: HeadLimits = HeadLimits()) {
            self.limits = limits
            scanner = HeadScanner(limits: limits, rules: .request)
        }

        /// Whether nothing of a request has come, an empty line aside.
        package var isUntouched: Bool { scanner.isUntouched }

        /// Goes on with new bytes.
        ///
        /// - Parameter bytes: what came; once a head is whole, what follows it remains in there.
        /// - Returns: the request; nil while its head is not whole.
        /// - Throws: what the client is to be answered, before the connection is closed.
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
#endif
