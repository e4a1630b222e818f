// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A line that the child prints and the parent reads: the log that the parent judges by.
///
/// "begin" is written before an operation is called and "done" after it returned, each with one call of the system, so that
/// an operation whose "done" stands before another's "begin" was over when the other began.
enum CrashLine: Hashable, Sendable, CustomStringConvertible {
    /// The store is open.
    case opened
    /// What lies in the store under a name; the verdict says how its body was.
    case saw(CrashIdentity, CrashSight?)
    /// Every name was looked at.
    case surveyed
    case begin(Int, CrashOperation)
    case done(Int, CrashOutcome)
    /// Entries were evicted: where there is room for all, the test's premise does not hold.
    case evicted
    /// Something is wrong that only the child could see.
    case wrong(String)

    var description: String {
        switch self {
        case .opened: "opened"
        case .saw(let identity, nil): "saw \(identity.key) \(identity.variant)"
        case .saw(let identity, let sight?):
            "saw \(identity.key) \(identity.variant) \(sight.stamp) \(sight.isPinned ? "pinned" : "free")"
        case .surveyed: "surveyed"
        case .begin(let number, let operation): "begin \(number) \(operation)"
        case .done(let number, let outcome): "done \(number) \(outcome)"
        case .evicted: "evicted"
        case .wrong(let text): "wrong \(text)"
        }
    }

    init?(_ text: some StringProtocol) {
        let words = String(text).split(separator: " ").map { String($0) }
        switch (words.first, words.count) {
        case ("opened", 1): self = .opened
        case ("evicted", 1): self = .evicted
        case ("surveyed", 1): self = .surveyed
        case ("saw", 3): self = .saw(CrashIdentity(key: words[1], variant: words[2]), nil)
        case ("saw", 5):
            guard let stamp = CrashStamp(words[3]) else { return nil }
            let sight = CrashSight(stamp: stamp, isPinned: words[4] == "pinned")
            self = .saw(CrashIdentity(key: words[1], variant: words[2]), sight)
        case ("begin", 3...):
            guard let number = Int(words[1]), let operation = CrashOperation(words.dropFirst(2)) else { return nil }
            self = .begin(number, operation)
        case ("done", 3):
            guard let number = Int(words[1]) else { return nil }
            self = .done(number, CrashOutcome(word: words[2]))
        case ("wrong", _): self = .wrong(words.dropFirst().joined(separator: " "))
        default: return nil
        }
    }
}

/// An entry that was found, its body whole.
struct CrashSight: Hashable, Sendable {
    let stamp: CrashStamp
    let isPinned: Bool
}

/// How an operation ended: `ok`, `gone` (there was nothing to work on), `refused`, or the code of an error.
struct CrashOutcome: Hashable, Sendable, CustomStringConvertible {
    let word: String

    var description: String { word }

    static let ok = CrashOutcome(word: "ok")
    static let gone = CrashOutcome(word: "gone")
    static let refused = CrashOutcome(word: "refused")
}

/// An operation that changes the store.
enum CrashOperation: Hashable, Sendable, CustomStringConvertible {
    case put(CrashIdentity, CrashStamp)
    case freshen(CrashIdentity, CrashStamp)
    case remove(CrashIdentity)
    case invalidate(String)
    case pin(CrashIdentity, Bool)
    case purge(CrashPurge)
    case close

    var description: String {
        switch self {
        case .put(let identity, let stamp): "put \(identity.key) \(identity.variant) \(stamp)"
        case .freshen(let identity, let stamp): "freshen \(identity.key) \(identity.variant) \(stamp)"
        case .remove(let identity): "remove \(identity.key) \(identity.variant)"
        case .invalidate(let key): "invalidate \(key)"
        case .pin(let identity, let isPinned): "pin \(identity.key) \(identity.variant) \(isPinned)"
        case .purge(let purge): "purge \(purge)"
        case .close: "close"
        }
    }

    init?(_ words: ArraySlice<String>) {
        let words = Array(words)
        let identity = words.count > 2 ? CrashIdentity(key: words[1], variant: words[2]) : nil
        switch (words.first, words.count, identity) {
        case ("put", 4, let identity?):
            guard let stamp = CrashStamp(words[3]) else { return nil }
            self = .put(identity, stamp)
        case ("freshen", 4, let identity?):
            guard let stamp = CrashStamp(words[3]) else { return nil }
            self = .freshen(identity, stamp)
        case ("remove", 3, let identity?): self = .remove(identity)
        case ("invalidate", 2, _): self = .invalidate(words[1])
        case ("pin", 4, let identity?): self = .pin(identity, words[3] == "true")
        case ("purge", 2, _) where words[1] == "all": self = .purge(.all)
        case ("purge", 3, _):
            guard let purge = CrashPurge(words[1], words[2]) else { return nil }
            self = .purge(purge)
        case ("close", 1, _): self = .close
        default: return nil
        }
    }
}

/// What a purge takes.
enum CrashPurge: Hashable, Sendable, CustomStringConvertible {
    case all
    case tag(String)
    case prefix(String)
    case variant(String)

    var description: String {
        switch self {
        case .all: "all"
        case .tag(let tag): "tag \(tag)"
        case .prefix(let prefix): "prefix \(prefix)"
        case .variant(let variant): "variant \(variant)"
        }
    }

    init?(_ kind: String, _ word: String) {
        switch kind {
        case "tag": self = .tag(word)
        case "prefix": self = .prefix(word)
        case "variant": self = .variant(word)
        default: return nil
        }
    }

    func takes(_ identity: CrashIdentity, _ stamp: CrashStamp) -> Bool {
        switch self {
        case .all: true
        case .tag(let tag): stamp.tags.contains(tag)
        case .prefix(let prefix): identity.key.hasPrefix(prefix)
        case .variant(let variant): identity.variant == variant
        }
    }
}
