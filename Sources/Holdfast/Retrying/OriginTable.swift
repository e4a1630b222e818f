// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One cell of state for each origin, limited in number: if it is full, the least recently used half of the idle cells is removed
/// at once.
///
/// Busy cells stay, so there may be up to four times as many for a while; beyond that, the least recently used half is removed,
/// busy or not. All cells are examined only once for at least half as many new origins as there are cells.
final class OriginTable<Cell: AnyObject & Sendable>: Sendable {
    private struct Entry {
        let cell: Cell
        var lastUse: MonotonicInstant
    }

    private struct State {
        var entries: [OriginText: Entry] = [:]
        var latest: (origin: OriginText, entry: Entry)?
        var roomUntil: Int

        /// Stores the last use of the cell that was found without a lookup.
        mutating func settle() {
            guard let latest, let index = entries.index(forKey: latest.origin) else { return }
            entries.values[index].lastUse = latest.entry.lastUse
        }

        /// Removes the least recently used half of the entries that `mayGo`.
        mutating func removeOlderHalf(where mayGo: (Cell) -> Bool) {
            let removable = entries.filter { mayGo($0.value.cell) }.sorted { $0.value.lastUse < $1.value.lastUse }
            for victim in removable.prefix((removable.count + 1) / 2) { entries[victim.key] = nil }
        }
    }

    private let state: Mutex<State>
    private let capacity: Int
    private let make: @Sendable (MonotonicInstant) -> Cell
    private let isIdle: @Sendable (Cell, MonotonicInstant) -> Bool

    /// - Parameters:
    ///   - capacity: the most origins, not counting busy ones.
    ///   - isIdle: whether nothing is lost with a cell at this instant; must be quick, and must not call the table.
    ///   - make: a cell for an origin that is new at this instant.
    init(
        capacity: Int,
        isIdle: @escaping @Sendable (Cell, MonotonicInstant) -> Bool = { _, _ in true },
        make: @escaping @Sendable (MonotonicInstant) -> Cell
    ) {
        self.capacity = max(1, capacity)
        self.isIdle = isIdle
        self.make = make
        state = Mutex(State(roomUntil: max(1, capacity)))
    }

    /// How many origins are remembered.
    var count: Int { state.withLock { $0.entries.count } }

    /// The cell of an origin; nil if there is none. Does not count as a use.
    func existingCell(of origin: OriginText) -> Cell? {
        state.withLock { $0.entries[origin]?.cell }
    }

    /// The cell of an origin; a new one is made if there is none.
    func cell(of origin: OriginText, now: MonotonicInstant) -> Cell {
        state.withLock { state in
            // Most clients talk to one origin: comparing its text is cheaper than hashing it.
            if let latest = state.latest, latest.origin == origin {
                state.latest?.entry.lastUse = now
                return latest.entry.cell
            }
            state.settle()
            if let index = state.entries.index(forKey: origin) {
                state.entries.values[index].lastUse = now
                state.latest = (state.entries.keys[index], state.entries.values[index])
                return state.entries.values[index].cell
            }
            if state.entries.count >= state.roomUntil { makeRoom(&state, now: now) }
            let entry = Entry(cell: make(now), lastUse: now)
            let owned = OriginText(copying: origin)
            state.entries[owned] = entry
            state.latest = (owned, entry)
            return entry.cell
        }
    }

    private func makeRoom(_ state: inout State, now: MonotonicInstant) {
        state.removeOlderHalf { isIdle($0, now) }
        let (most, isTooLarge) = capacity.multipliedReportingOverflow(by: 4)
        if !isTooLarge, state.entries.count >= most { state.removeOlderHalf { _ in true } }
        // If most cells are busy, the next search is postponed until as many new origins have come again.
        let left = state.entries.count
        state.roomUntil = max(capacity, min(left + max(1, left / 2), isTooLarge ? .max : most))
    }
}

/// The origin of a request as text (RFC 9110 §4.3.1): scheme, host and port, in lower case, without the default port.
///
/// Made on every call, so the usual form, in lower case and without a port, is a slice of the URL, which needs no allocation.
struct OriginText: Sendable, Hashable {
    let text: Substring

    init(_ request: URLRequest) { self.init(request.url?.absoluteString ?? "") }

    init(_ url: String) {
        var url = url
        if let end = url.withUTF8({ OriginText.plainEnd(of: $0) }) {
            text = url[..<url.utf8.index(url.startIndex, offsetBy: end)]
            return
        }
        let bytes = url.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            text = ""
            return
        }
        let start = bytes.index(colon, offsetBy: 3, limitedBy: bytes.endIndex) ?? bytes.endIndex
        guard bytes[colon..<start].count == 3, bytes[colon..<start].dropFirst().allSatisfy({ $0 == UInt8(ascii: "/") })
        else {
            text = url[..<colon]
            return
        }
        let rest = bytes[start...]
        let end = rest.firstIndex { OriginText.endsAuthority($0) } ?? rest.endIndex
        text = OriginText.normal(scheme: url[..<colon], authority: url[start..<end])
    }

    /// Where the origin of a URL in the usual form ends; nil for other forms.
    private static func plainEnd(of bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        var index = 0
        while index < bytes.count, bytes[index] != UInt8(ascii: ":") {
            guard isPlain(bytes[index]) else { return nil }
            index += 1
        }
        guard bytes.count >= index + 3, bytes[index + 1] == UInt8(ascii: "/"), bytes[index + 2] == UInt8(ascii: "/")
        else { return nil }
        index += 3
        while index < bytes.count, !endsAuthority(bytes[index]) {
            guard isPlain(bytes[index]) else { return nil }
            index += 1
        }
        return index
    }

    /// The same text in its own storage, so that a long URL is not kept in memory for its beginning.
    init(copying other: OriginText) { text = String(other.text)[...] }

    private static func normal(scheme: Substring, authority: Substring) -> Substring {
        let scheme = scheme.lowercased()
        var host = authority.split(separator: "@", omittingEmptySubsequences: false).last.map { $0.lowercased() } ?? ""
        let port = scheme == "https" ? ":443" : ":80"
        if scheme.hasPrefix("http"), host.hasSuffix(port) { host.removeLast(port.count) }
        if host.hasSuffix(":") { host.removeLast() }
        return "\(scheme)://\(host)"[...]
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    /// Whether a byte is part of the usual form: neither upper case nor the mark of a port or of user information.
    private static func isPlain(_ byte: UInt8) -> Bool {
        byte != UInt8(ascii: ":") && byte != UInt8(ascii: "@") && !(UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte)
    }
}
