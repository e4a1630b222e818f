// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOCore

    /// The state of a ``ByteChannel`` without effects: its methods return what to do after releasing the lock.
    struct ByteChannelState {
        typealias Reader = CheckedContinuation<ByteBuffer?, any Error>
        typealias Writer = CheckedContinuation<Void, any Error>
        /// Who is told that the input, or everything, has ended.
        typealias Ended = (reader: Reader?, writer: Writer?, action: (@Sendable () -> Void)?)

        /// A write that waits for the channel to become writable or, without bytes, for all bytes to be sent.
        struct PendingWrite {
            let continuation: Writer
            let bytes: ByteBuffer?
            let stallLimit: TimeAmount?
            var deadline: NIODeadline?
            var isFlushing = false
            var unsent = Int.max
        }

        /// How a read continues.
        enum Reading {
            /// Return these bytes.
            case bytes(ByteBuffer, asksForMore: Bool)
            case end
            case failure(ChannelFault)
            /// Nothing is available; the reader waits.
            case wait
        }

        private enum End {
            case input
            case failure(ChannelFault)
        }

        /// Unread bytes that arrived; usually one buffer.
        private var held: ByteBuffer?
        /// Bytes that the reader gave back. They come first, and nothing more is requested for them, so that both are
        /// limited.
        private var returned: ByteBuffer?
        private var inputEnd: End?
        /// Set once nothing can be written any more.
        private(set) var outputFault: ChannelFault?
        private var reader: Reader?
        private var readDeadline: NIODeadline?
        var pendingWrite: PendingWrite?
        var isClosedHere = false
        /// Whether closing resets the connection.
        var resetsOnClose = false
        var onInputEnd: (@Sendable () -> Void)?
        /// The single timer of the channel, and its deadline.
        var timer: Scheduled<Void>?
        private var armedFor: NIODeadline?

        /// Whether to request the next bytes: nothing is held, so one buffer may be read ahead.
        var wantsBytes: Bool { held == nil && inputEnd == nil }

        /// Whether the input has ended, even if some of it is still held.
        var hasEnded: Bool { inputEnd != nil }

        /// Whether there is anything to read, including the end of the input.
        var isReadable: Bool { returned != nil || held != nil || inputEnd != nil }

        mutating func read() -> Reading {
            if let bytes = returned {
                returned = nil
                return .bytes(bytes, asksForMore: false)
            }
            if let bytes = held {
                held = nil
                return .bytes(bytes, asksForMore: true)
            }
            switch inputEnd {
            case .input: return .end
            case .failure(let fault): return .failure(fault)
            case nil: return .wait
            }
        }

        mutating func wait(_ continuation: Reader, by deadline: NIODeadline?) -> Reading {
            let reading = read()
            if case .wait = reading {
                guard reader == nil else { return .failure(ChannelFault(.closed)) }
                reader = continuation
                readDeadline = deadline
            }
            return reading
        }

        mutating func takeReader() -> Reader? {
            defer { reader = nil }
            return reader
        }

        mutating func receive(_ bytes: ByteBuffer) -> Reader? {
            guard inputEnd == nil, bytes.readableBytes > 0 else { return nil }
            if let reader = takeReader() { return reader }
            if held == nil {
                held = bytes
            } else {
                // The socket's last bytes, read in one go when the peer closes.
                held?.writeImmutableBuffer(bytes)
            }
            return nil
        }

        mutating func putBack(_ bytes: ByteBuffer) {
            guard bytes.readableBytes > 0 else { return }
            var all = bytes
            if let returned { all.writeImmutableBuffer(returned) }
            returned = all
        }

        /// The input ended; nil if that was known.
        mutating func endInput() -> Ended? {
            guard inputEnd == nil else { return nil }
            inputEnd = isClosedHere ? .failure(ChannelFault(.closed)) : .input
            defer { onInputEnd = nil }
            return (takeReader(), nil, onInputEnd)
        }

        /// Input and output failed; the first fault stays.
        mutating func fail(_ fault: ChannelFault) -> Ended {
            let action = onInputEnd
            onInputEnd = nil
            if inputEnd == nil { inputEnd = .failure(fault) }
            if outputFault == nil { outputFault = fault }
            return (takeReader(), takeWrite()?.continuation, action)
        }

        /// What a waiting reader gets after the input ended.
        func outcome() -> Result<ByteBuffer?, any Error> {
            if case .failure(let fault) = inputEnd { .failure(fault) } else { .success(nil) }
        }

        mutating func takeWrite() -> PendingWrite? {
            defer { pendingWrite = nil }
            return pendingWrite
        }

        /// The timer's new deadline, if it has to fire earlier.
        mutating func deadlineToArm() -> NIODeadline? {
            let reading = reader == nil ? nil : readDeadline
            guard let earliest = [reading, pendingWrite?.deadline].compactMap(\.self).min() else { return nil }
            if let armedFor, armedFor <= earliest { return nil }
            armedFor = earliest
            return earliest
        }

        /// The timer fired; returns those who have waited for too long.
        mutating func expire(now: NIODeadline, unsent: Int?) -> (reader: Reader?, writer: Writer?) {
            armedFor = nil
            timer = nil
            var expired: (reader: Reader?, writer: Writer?) = (nil, nil)
            if reader != nil, let readDeadline, readDeadline <= now { expired.reader = takeReader() }
            if let write = pendingWrite, let deadline = write.deadline, deadline <= now, let limit = write.stallLimit {
                if let unsent, unsent < write.unsent {
                    pendingWrite?.unsent = unsent
                    pendingWrite?.deadline = now + limit
                } else {
                    outputFault = outputFault ?? ChannelFault(.writeStalled)
                    expired.writer = takeWrite()?.continuation
                }
            }
            return expired
        }
    }
#endif
