// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A measurable subject: its name, its cases, and how to create it.
struct SubjectKind: Sendable {
    /// What a subject is used for.
    enum Purpose: Sendable {
        /// Gets and replacements of entries that all fit.
        case reading
        /// Puts of entries that are always new.
        case writing
    }

    /// The directory and the purpose of a new subject.
    struct Setting: Sendable {
        let directory: String
        let workload: Workload
        let purpose: Purpose
        let plan: Plan
        /// The total bytes of all entries that must fit.
        let volume: Int
    }

    let name: String
    /// The cases with this subject: `put`, `get`, `mixed`, `reclaim`, `open`.
    let kinds: Set<String>
    /// Whether it reads with read calls; mapped files are read without them.
    var readsByCalls = true
    /// Whether each operation takes milliseconds, so that it holds and does far less.
    var isSlow = false
    let make: @Sendable (Setting) async throws -> any Subject

    /// All subjects, in the order of the tables.
    static var all: [SubjectKind] {
        [
            SubjectKind(name: "raw", kinds: ["put", "get", "mixed", "reclaim"]) { try RawSubject($0) },
            SubjectKind(name: "holdfast", kinds: ["put", "get", "mixed", "reclaim", "open"]) {
                let isFull = $0.purpose == .writing
                return try await HoldfastSubject($0, capacity: isFull ? $0.plan.putCapacity : nil, fillsUp: isFull)
            },
            SubjectKind(name: "holdfast-growing", kinds: ["put"]) {
                try await HoldfastSubject($0, capacity: nil, fillsUp: false)
            },
            SubjectKind(name: "sqlite", kinds: ["put", "get", "mixed"]) { try SQLiteSubject($0, .plain) },
            SubjectKind(name: "sqlite-tuned", kinds: ["put", "get", "mixed"], readsByCalls: false) {
                try SQLiteSubject($0, .tuned)
            },
            SubjectKind(name: "sqlite-off", kinds: ["put", "mixed"], readsByCalls: false) {
                try SQLiteSubject($0, .off)
            },
        ] + lmdb + [
            SubjectKind(name: "files", kinds: ["put", "get", "mixed"]) { try FilesSubject($0) },
            SubjectKind(name: "urlcache", kinds: ["put", "get", "mixed"], isSlow: true) { try URLCacheSubject($0) },
        ]
    }

    #if LMDB
        /// This build has all subjects.
        static let missing: String? = nil
        private static var lmdb: [SubjectKind] {
            [
                SubjectKind(name: "lmdb", kinds: ["put", "get", "mixed"], readsByCalls: false) {
                    try LMDBSubject($0)
                }
            ]
        }
    #else
        /// Which subject this build lacks, and how to add it.
        static let missing: String? = """
            lmdb is left out, because its header was not found when the package was built. Install liblmdb-dev (or lmdb with \
            brew) and build again with --manifest-cache none.
            """
        private static var lmdb: [SubjectKind] { [] }
    #endif
}
