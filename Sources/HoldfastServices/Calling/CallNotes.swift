// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What is known about one exchange while it goes through the pipeline.
///
/// The exchange's options hold it, and parts of a response may hold those. ``end()`` therefore empties it, so that a call that
/// outlives its caller in a cache keeps nothing in memory.
final class CallNotes<Value: Sendable>: Sendable {
    private struct State {
        var urlRequest: URLRequest
        var decoded: (value: Value, response: Response)?
        var refused: Response?
        var isOver = false
    }

    private let state: Mutex<State>

    init(_ urlRequest: URLRequest) { state = Mutex(State(urlRequest: urlRequest)) }

    /// Whether the call has ended.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// The request as it was last sent.
    var urlRequest: URLRequest { state.withLock { $0.urlRequest } }

    /// The last response that was refused, if nothing was sent since.
    var refused: Response? { state.withLock { $0.refused } }

    /// Records that a request goes out; the result of the previous one no longer counts.
    func sent(_ urlRequest: URLRequest) { record { $0 = State(urlRequest: urlRequest) } }

    func decoded(_ value: Value, response: Response) {
        record { state in
            state.decoded = (value, response)
            state.refused = nil
        }
    }

    func refused(_ response: Response) {
        record { state in
            state.decoded = nil
            state.refused = response
        }
    }

    private func record(_ change: (inout State) -> Void) {
        state.withLock { state in
            if !state.isOver { change(&state) }
        }
    }

    /// The decoded value of this response, if it is the one that was decoded.
    func value(of response: Response) -> Value? {
        guard let decoded = state.withLock({ $0.decoded }), decoded.response.isSame(as: response) else { return nil }
        return decoded.value
    }

    /// Drops everything that was recorded.
    func end() {
        state.withLock { state in
            state = State(urlRequest: state.urlRequest)
            state.isOver = true
        }
    }
}

extension Response {
    /// Whether head and content are the same, so that decoding would give the same value.
    fileprivate func isSame(as other: Response) -> Bool {
        guard head == other.head, url == other.url else { return false }
        if let mine = body.bytesInMemory, let others = other.body.bytesInMemory {
            return mine.sharesStorage(with: others) || mine == others
        }
        guard let mine = body.source, let others = other.body.source, type(of: mine) is AnyClass else {
            return body.bytesInMemory == nil && other.body.bytesInMemory == nil
        }
        return mine as AnyObject === others as AnyObject
    }
}

extension ByteChunk {
    /// Whether both use the same memory, which saves comparing megabytes.
    fileprivate func sharesStorage(with other: ByteChunk) -> Bool {
        count == other.count
            && withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
                == other.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    }
}
