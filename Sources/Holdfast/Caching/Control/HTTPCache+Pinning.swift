// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics
public import HoldfastStorage

/// Keeping responses for times without a network.
extension HTTPCache {
    /// Pins the selected responses, so that the store evicts others in their stead.
    ///
    /// A pin belongs to the stored variant: it survives freshening, and goes over to the response that replaces this one. It
    /// prolongs no lifetime: offline, a stale response still answers only where RFC 9111 §4.2.4, the options or the call
    /// allow it. Purging and invalidation take pinned responses too.
    ///
    /// What is pinned never exceeds half of the store's capacity; what no longer fits is refused and stays as it is. A pinned
    /// response that grows past that room loses its pin.
    ///
    /// - Parameters:
    ///   - selection: which responses; those still being stored are not among them.
    ///   - now: the time by which ages are judged; the system's by default.
    /// - Returns: how many are pinned now, and how many found no room.
    /// - Throws: `StoreError`; pins set before the failure stay.
    @discardableResult
    public func pin(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> PinReport {
        var report = PinReport()
        for entry in try await entries(of: selection, now: now) {
            switch try await setPinned(true, entry, now: now) {
            case .done: report.pinned += 1
            case .refused: report.refused += 1
            case .gone: break
            }
        }
        return report
    }

    /// Releases the pins of the selected responses, which may then be evicted like any other.
    ///
    /// - Parameters:
    ///   - selection: which responses.
    ///   - now: as in ``pin(_:now:)``.
    /// - Returns: how many pins were released.
    /// - Throws: `StoreError`; pins released before the failure stay released.
    @discardableResult
    public func unpin(
        _ selection: CacheSelection,
        now: Timestamp = SystemClock().timestamp
    ) async throws(StoreError) -> Int {
        var released = 0
        for entry in try await entries(of: selection, now: now) where entry.isPinned {
            if case .done = try await setPinned(false, entry, now: now) { released += 1 }
        }
        return released
    }

    private enum PinStep {
        case done
        case refused
        case gone
    }

    private func setPinned(
        _ pinned: Bool,
        _ selected: StoredEntry,
        now: Timestamp
    ) async throws(StoreError) -> PinStep {
        var entry = selected
        for _ in 0..<8 {
            if try await writer.setPinned(pinned, entry) { return .done }
            // Either there is no room, or the entry was freshened or replaced since the look.
            guard let newer = try await successor(of: entry, now: now) else { return .gone }
            if newer.version == entry.version { return .refused }
            entry = newer
        }
        return .refused
    }
}

/// What came of pinning.
public struct PinReport: Sendable, Hashable {
    /// How many of the selected responses are pinned now, those included that were before.
    public internal(set) var pinned: Int
    /// How many found no room among the pins, so that they may be evicted.
    public internal(set) var refused: Int

    /// A report of these numbers.
    public init(pinned: Int = 0, refused: Int = 0) {
        self.pinned = pinned
        self.refused = refused
    }
}
