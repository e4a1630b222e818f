// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// A place in a ``WaitingLine`` that is given back exactly once: when told, or with the last who holds it.
final class HeldPlace: Sendable {
    private let line: WaitingLine
    private let isLeft = Atomic(false)

    init(_ line: WaitingLine) {
        self.line = line
    }

    deinit {
        leave()
    }

    func leave() {
        guard !isLeft.exchange(true, ordering: .acquiringAndReleasing) else { return }
        line.leave()
    }
}

/// A response body that holds a place until it ends, fails, is cancelled or is dropped.
final class PlacedBody: ByteSource {
    private let upstream: any ByteSource
    private let place: HeldPlace

    init(_ upstream: any ByteSource, _ place: HeldPlace) {
        self.upstream = upstream
        self.place = place
    }

    func next() async throws -> ByteChunk? {
        do {
            let chunk = try await upstream.next()
            if chunk == nil { place.leave() }
            return chunk
        } catch {
            place.leave()
            throw error
        }
    }

    func cancel() {
        upstream.cancel()
        place.leave()
    }
}
