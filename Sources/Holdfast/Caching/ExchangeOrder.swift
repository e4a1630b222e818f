// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics
internal import HoldfastStorage
private import Synchronization

/// In which order the responses of exchanges under way were asked for, so that an older one never replaces a newer one
/// (RFC 9111 §4: the most recent response).
///
/// Known is what came for a target, to be stored or to say that something stored no longer holds, while an exchange for it was under
/// way: what begins later is newer than all of it. So the table has a row for each target with an exchange under way, and none for others.
final class ExchangeOrder: Sendable {
    /// An exchange under way; letting go of it ends it.
    final class Ticket: Sendable {
        let target: TargetURI
        /// How often the path had been invalidated by then, for responses that answer for other queries of it.
        let pathMark: InvalidationLog.PathMark
        private let order: ExchangeOrder

        fileprivate init(_ target: TargetURI, pathMark: InvalidationLog.PathMark, in order: ExchangeOrder) {
            self.target = target
            self.pathMark = pathMark
            self.order = order
        }

        deinit { order.end(target) }
    }

    /// A response that is about to be written, or to be written down anew.
    struct Claim: Sendable {
        /// The place of the request that got it (``SentExchange/order``).
        let order: HybridTimestamp
        let key: StoreKey
        let nominated: NominatedFields
        /// The keys by which whoever asked for it looks things up.
        let readable: [StoreKey]
        /// The fields of that request, from which Vary nominates.
        let fields: HeaderFields
    }

    private struct Written: Sendable {
        let order: HybridTimestamp
        let key: StoreKey
        let nominated: NominatedFields
    }

    private struct Row: Sendable {
        var exchanges = 0
        var written: [Written] = []
        /// The latest that was forgotten for want of room: what is older counts as overtaken.
        var forgotten: HybridTimestamp?
    }

    /// More variants than this are seldom written while one exchange is under way.
    private static let mostWritten = 64

    private let secret: @Sendable () -> [UInt8]
    private let rows = Mutex<[TargetURI: Row]>([:])

    /// - Parameter secret: the key for the digests of nominated credentials; asked for each time, since a shared store that lost its own
    ///   takes another.
    init(secret: @autoclosure @escaping @Sendable () -> [UInt8]) {
        self.secret = secret
    }

    /// An exchange for `target` is about to begin.
    func begin(_ target: TargetURI, pathMark: InvalidationLog.PathMark) -> Ticket {
        rows.withLock { $0[target, default: Row()].exchanges += 1 }
        return Ticket(target, pathMark: pathMark, in: self)
    }

    private func end(_ target: TargetURI) {
        rows.withLock { rows in
            guard let index = rows.index(forKey: target) else { return }
            rows.values[index].exchanges -= 1
            if rows.values[index].exchanges == 0 { rows.remove(at: index) }
        }
    }

    /// When the newest response that came for a target meanwhile, and answers a request, was asked for; nil where none did.
    ///
    /// - Parameters:
    ///   - keys: by which the request is looked up.
    ///   - fields: of the request.
    func newest(
        for target: TargetURI,
        under keys: @autoclosure () -> [StoreKey],
        matching fields: HeaderFields
    ) -> HybridTimestamp? {
        rows.withLock { rows in
            guard let written = rows[target]?.written, !written.isEmpty else { return nil }
            let keys = keys()
            return
                written
                .filter { keys.contains($0.key) && $0.nominated.matches(fields, secret: secret()) }
                .map(\.order).max()
        }
    }

    /// Whether no response that was asked for later has come in the place of this one.
    func isNewest(_ claim: Claim, for target: TargetURI) -> Bool {
        rows.withLock { rows in rows[target].map { isNewest(claim, in: $0) } ?? true }
    }

    /// Notes that a response has come, unless one that was asked for later has: whatever becomes of it, no older one is written.
    ///
    /// A later one may come until this one is written, so ask ``isNewest(_:for:)`` before and after that.
    ///
    /// - Returns: whether it may be written.
    func enter(_ claim: Claim, for target: TargetURI) -> Bool {
        rows.withLock { rows in
            guard let index = rows.index(forKey: target) else { return true }
            guard isNewest(claim, in: rows.values[index]) else { return false }
            rows.values[index].written.removeAll { $0.key == claim.key && $0.nominated == claim.nominated }
            rows.values[index].written.append(
                Written(order: claim.order, key: claim.key, nominated: claim.nominated)
            )
            if rows.values[index].written.count > ExchangeOrder.mostWritten {
                let oldest = rows.values[index].written.removeFirst()
                rows.values[index].forgotten = max(rows.values[index].forgotten ?? oldest.order, oldest.order)
            }
            return true
        }
    }

    private func isNewest(_ claim: Claim, in row: Row) -> Bool {
        if let forgotten = row.forgotten, claim.order < forgotten { return false }
        return !row.written.contains { written in
            written.order > claim.order && claim.readable.contains(written.key)
                && written.nominated.matches(claim.fields, secret: secret())
        }
    }

    /// How many targets have an exchange under way.
    var count: Int { rows.withLock { $0.count } }
}
