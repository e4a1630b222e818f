// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// The content of a request; its form says whether it can be sent twice.
public struct RequestBody: Sendable {
    /// The forms of a body; closed, because every transport must handle each of them.
    public enum Form: Sendable {
        /// No content.
        case none
        /// Bytes in memory.
        case bytes(ByteChunk)
        /// A file, read again for each attempt.
        case file(URL)
        /// A new stream for each attempt; the length if known.
        case factory(length: Int?, @Sendable () async throws -> any ByteSource)
        /// A stream that can be read once; the length if known.
        case oneShot(length: Int?, any ByteSource)
        /// The `httpBodyStream` of the URLRequest itself: one-shot, and on Linux silently empty when sent twice. It is sent
        /// again only if it was not opened, such as after a refused connection.
        case requestStream
    }

    /// The form.
    public let form: Form

    /// Keeps the first bytes of a one-shot body; its form is then that of a factory.
    private let replay: ReplayableBody?
    /// The request whose stream it is.
    private let carrier: URLRequest?

    /// A body of this form.
    public init(_ form: Form) { self.init(form, replay: nil, carrier: nil) }

    private init(_ form: Form, replay: ReplayableBody?, carrier: URLRequest?) {
        self.form = form
        self.replay = replay
        self.carrier = carrier
    }

    /// No content.
    public static let none = RequestBody(.none)

    /// Bytes in memory.
    public static func bytes(_ bytes: ByteChunk) -> RequestBody { RequestBody(.bytes(bytes)) }

    /// Bytes in memory, copied once.
    public static func data(_ data: Data) -> RequestBody { RequestBody(.bytes(ByteChunk(copying: data))) }

    /// A file, read again for each attempt; it must not change while the call lasts.
    public static func file(_ url: URL) -> RequestBody { RequestBody(.file(url)) }

    /// A new stream for each attempt.
    public static func factory(
        length: Int? = nil,
        _ make: @escaping @Sendable () async throws -> any ByteSource
    ) -> RequestBody {
        RequestBody(.factory(length: length, make))
    }

    /// A stream that can be read once: sent in the first attempt, and never retried once reading has begun.
    public static func oneShot(length: Int? = nil, _ source: any ByteSource) -> RequestBody {
        RequestBody(.oneShot(length: length, OneShotSource(source)))
    }

    /// The content that the URLRequest itself carries.
    public static func carried(by request: URLRequest) -> RequestBody {
        if let data = request.httpBody { return .data(data) }
        return request.httpBodyStream == nil
            ? .none : RequestBody(.requestStream, replay: nil, carrier: request)
    }

    /// Whether the content can be sent again byte for byte.
    public var isReplayable: Bool {
        if let replay { return replay.isWhole }
        return switch form {
        case .none, .bytes, .file, .factory: true
        case .oneShot, .requestStream: false
        }
    }

    /// Whether the next attempt can send all of the content: replayable, or one-shot and unread.
    var isWhole: Bool {
        switch form {
        case .oneShot(_, let source): (source as? OneShotSource)?.isUntouched ?? false
        case .requestStream: carrier?.httpBodyStream?.streamStatus == .notOpen
        case .none, .bytes, .file, .factory: isReplayable
        }
    }

    /// The body with its first `limit` bytes kept, if it is one-shot and unread; otherwise unchanged.
    ///
    /// The request's own stream stays as it is: URLSession reads it while it sends, and would have to read it completely before it
    /// could be sent twice.
    func teed(limit: Int) -> RequestBody {
        guard limit > 0, isWhole, case .oneShot(let length, let source) = form else { return self }
        let replay = ReplayableBody(source, limit: limit)
        return RequestBody(.factory(length: length) { replay.makeReader() }, replay: replay, carrier: nil)
    }

    /// Releases what is kept of a one-shot body, since no further attempt will follow.
    func releaseReplay() {
        replay?.release()
    }

    /// Whether there is no content at all.
    public var isNone: Bool {
        switch form {
        case .none: true
        case .bytes(let bytes): bytes.isEmpty
        case .file, .factory, .oneShot, .requestStream: false
        }
    }
}

/// Remembers whether its bytes were requested: a partly read body cannot be sent, whatever happened to the attempt.
private final class OneShotSource: ByteSource {
    private let upstream: any ByteSource
    private let wasTouched = Atomic(false)

    init(_ upstream: any ByteSource) { self.upstream = upstream }

    var isUntouched: Bool { !wasTouched.load(ordering: .acquiring) }

    func next() async throws -> ByteChunk? {
        wasTouched.store(true, ordering: .releasing)
        return try await upstream.next()
    }

    func cancel() {
        wasTouched.store(true, ordering: .releasing)
        upstream.cancel()
    }
}
