// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
public import HoldfastStorage

/// One stored response as a message of its own: what ``HTTPCache/export(_:now:)`` gives.
///
/// Its bytes stay readable whatever becomes of the entry, until the last copy of this value and of what was made from it is gone.
public struct ExportedEntry: Sendable {
    /// What the cache tells of the entry, as it was when it was opened; hits and bytes as they were listed.
    public let info: CacheEntryInfo
    /// The head as the cache would answer with it at that time: Age and Date set (RFC 9111 §4), and a Content-Length of exactly
    /// the body's bytes where the status allows one (RFC 9110 §8.6).
    ///
    /// Where only parts of the content are stored it is that of a 206.
    public let head: ResponseHead

    /// How long it is fresh from its making, and by which rule (RFC 9111 §4.2.1).
    public let lifetime: FreshnessLifetime

    private let pieces: [StoredBodySource.Piece]
    private let stored: any StoredBody

    init(
        info: CacheEntryInfo,
        head: ResponseHead,
        lifetime: FreshnessLifetime,
        pieces: [StoredBodySource.Piece],
        stored: any StoredBody
    ) {
        self.info = info
        self.head = head
        self.lifetime = lifetime
        self.pieces = pieces
        self.stored = stored
    }

    /// The content, read as it is asked for; each use of this property begins anew.
    public var body: ResponseBody {
        stream(pieces)
    }

    /// Status line and field lines with the empty line behind them (RFC 9112 §4, §5), as HTTP/1.1.
    ///
    /// Nothing is said of the reason, which has no meaning (RFC 9112 §4).
    public var headBytes: ByteChunk {
        var text = "HTTP/1.1 \(head.status.rawValue) \r\n"
        for line in head.fields { text += "\(line.name.rawName): \(line.value)\r\n" }
        return ByteChunk(copying: (text + "\r\n").utf8)
    }

    /// The whole message, head and content, chunk by chunk; each use of this property begins anew.
    public var message: ResponseBody {
        stream([.literal(headBytes)] + pieces)
    }

    private func stream(_ pieces: [StoredBodySource.Piece]) -> ResponseBody {
        let length = pieces.reduce(0) { $0 + $1.count }
        return ResponseBody(StoredBodySource(stored, pieces, delivered: { _ in }, failed: { _ in }), length: length)
    }
}

extension StoredBodySource.Piece {
    /// Its length in bytes.
    fileprivate var count: Int {
        switch self {
        case .literal(let bytes): bytes.count
        case .stored(let range): range.count
        }
    }
}
