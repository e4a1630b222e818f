// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastStorage
private import Synchronization

/// Reads the sections of a form one after the other.
final class MultipartSource: ByteSource {
    private struct State {
        var sections: ArraySlice<MultipartWriter.Section>
        var current: Current?
        var isCancelled = false
    }

    /// The section being read.
    private struct Current {
        let source: any ByteSource
        /// The bytes still to come, if the length is known.
        var missing: Int?
    }

    private let state: Mutex<State>

    init(_ sections: [MultipartWriter.Section]) {
        state = Mutex(State(sections: sections[...]))
    }

    deinit { state.withLock { $0.current }?.source.cancel() }

    func next() async throws -> ByteChunk? {
        while true {
            let (isCancelled, current) = state.withLock { ($0.isCancelled, $0.current) }
            if isCancelled { throw CancellationError() }
            if let current {
                if let chunk = try await chunk(of: current) { return chunk }
                continue
            }
            switch state.withLock({ $0.sections.popFirst() }) {
            case nil: return nil
            case .bytes(let bytes): if !bytes.isEmpty { return bytes }
            case .file(let snapshot): try begin(FileSource(snapshot), length: snapshot.size)
            case .stream(let length, let make): try begin(try await make(), length: length)
            }
        }
    }

    func cancel() {
        let current = state.withLock { state in
            state.isCancelled = true
            state.sections = []
            return state.current.take()
        }
        current?.source.cancel()
    }

    private func begin(_ source: any ByteSource, length: Int?) throws {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.current = Current(source: source, missing: length) }
            return state.isCancelled
        }
        guard isCancelled else { return }
        source.cancel()
        throw CancellationError()
    }

    /// The next chunk of a section; nil at its end, after which the next section is read.
    private func chunk(of current: Current) async throws -> ByteChunk? {
        let chunk: ByteChunk?
        do {
            chunk = try await current.source.next()
        } catch {
            cancel()
            throw error
        }
        if let missing = current.missing, chunk.map({ $0.count > missing }) ?? (missing > 0) {
            cancel()
            throw ServiceError(
                .badRequest,
                "A part of the form is not as long as declared. Declare its true length, or none.",
                progress: .notSent
            )
        }
        state.withLock { state in
            guard let chunk else { return state.current = nil }
            if let missing = state.current?.missing { state.current?.missing = missing - chunk.count }
        }
        return chunk
    }
}
