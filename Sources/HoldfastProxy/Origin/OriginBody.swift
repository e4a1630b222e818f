// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// The body of a response, read from the connection as its reader asks for it.
    final class OriginBody: ByteSource {
        /// How much of an unwanted body is read so that its connection can be kept, and for how long.
        private static let drain = (bytes: 64 << 10, time: TimeAmount.seconds(1))

        private struct State {
            /// Bytes that arrived together with the head.
            var first: ByteChunk?
            var decoder: BodyDecoder
            var end: Result<Void, any Error>?
            var isReading = false
            var hasDelivered = false
        }

        private enum Next {
            case chunk(ByteChunk)
            case end(Result<Void, any Error>)
            case read
        }

        private let exchange: Exchange
        private let state: Mutex<State>

        /// - Parameters:
        ///   - first: the bytes that are already decoded.
        ///   - decoder: not at its end.
        init(_ exchange: Exchange, first: ByteChunk, decoder: BodyDecoder) {
            self.exchange = exchange
            state = Mutex(State(first: first.isEmpty ? nil : first, decoder: decoder))
        }

        deinit { cancel() }

        func next() async throws -> ByteChunk? {
            while true {
                let next: Next = state.withLock { state in
                    if let first = state.first {
                        state.first = nil
                        state.hasDelivered = true
                        return .chunk(first)
                    }
                    if let end = state.end { return .end(end) }
                    state.isReading = true
                    return .read
                }
                switch next {
                case .chunk(let chunk): return chunk
                case .end(let end):
                    try end.get()
                    return nil
                case .read:
                    let chunk = try await read()
                    if !chunk.isEmpty { return chunk }
                }
            }
        }

        func cancel() {
            let (wasOpen, isReading, decoder) = state.withLock { state in
                let wasOpen = state.end == nil
                if wasOpen || state.first != nil { state.end = .failure(CancellationError()) }
                state.first = nil
                return (wasOpen, state.isReading, state.decoder)
            }
            guard wasOpen else { return }
            guard !isReading, let left = decoder.left, left <= OriginBody.drain.bytes else {
                return exchange.finish(reusable: false)
            }
            let exchange = exchange
            Task { await OriginBody.drain(decoder, of: exchange) }
        }

        /// Reads a small unwanted rest, so that the connection can be used again.
        private static func drain(_ decoder: BodyDecoder, of exchange: Exchange) async {
            var decoder = decoder
            let deadline = NIODeadline.now() + drain.time
            do {
                while !decoder.isAtEnd, let buffer = try await exchange.channel.read(by: deadline) {
                    _ = try decoder.decode(buffer)
                }
            } catch {
                return exchange.finish(reusable: false)
            }
            exchange.finish(reusable: decoder.isAtEnd && !decoder.hasSurplus)
        }

        /// Reads once; empty if no content arrived.
        private func read() async throws -> ByteChunk {
            let outcome: Result<ByteBuffer?, any Error>
            do {
                outcome = .success(try await exchange.channel.read(by: .now() + exchange.stall))
            } catch {
                outcome = .failure(error)
            }
            let (result, ending): (Result<ByteChunk, any Error>, Bool?) = state.withLock { state in
                state.isReading = false
                // It was cancelled in the meantime.
                if case .failure(let error) = state.end { return (.failure(error), nil) }
                do {
                    guard let buffer = try outcome.get() else {
                        guard state.decoder.endOfInput() else { throw ChannelFault(.broken) }
                        state.end = .success(())
                        return (.success(ByteChunk()), false)
                    }
                    let chunk = try state.decoder.decode(buffer)
                    if !chunk.isEmpty { state.hasDelivered = true }
                    guard state.decoder.isAtEnd else { return (.success(chunk), nil) }
                    state.end = .success(())
                    return (.success(chunk), !state.decoder.hasSurplus)
                } catch {
                    let failure = exchange.bodyFailure(error, hasDelivered: state.hasDelivered)
                    state.end = .failure(failure)
                    return (.failure(failure), false)
                }
            }
            if let ending { exchange.finish(reusable: ending) }
            return try result.get()
        }
    }

    /// Extracts a response's body from the bytes that arrive after its head.
    struct BodyDecoder: Sendable {
        private var content: ContentDecoder
        /// Whether there were bytes after the end of the body: they cannot be interpreted, so the connection cannot be
        /// used again.
        private(set) var hasSurplus = false

        init(_ body: ResponseFraming.Body) {
            content =
                switch body {
                case .none: .length(remaining: 0)
                case .length(let length): .length(remaining: length)
                case .chunked: .chunked(ChunkedDecoder(toleratesPadding: true))
                case .untilClose: .untilEnd(hasEnded: false)
                }
        }

        /// Whether the body is complete.
        var isAtEnd: Bool { content.isAtEnd }

        /// How many bytes are still to come, if known.
        var left: Int? { content.remaining }

        /// Consumes all of `buffer`.
        ///
        /// - Returns: the content in it; empty if there is none.
        mutating func decode(_ buffer: ByteBuffer) throws(MessageFault) -> ByteChunk {
            var rest = buffer
            let chunk = try content.all(in: &rest)
            if rest.readableBytes > 0 { hasSurplus = true }
            return chunk
        }

        /// Notes that the server closed its side; false if the body was cut short.
        mutating func endOfInput() -> Bool { isAtEnd || content.end() }
    }
#endif
