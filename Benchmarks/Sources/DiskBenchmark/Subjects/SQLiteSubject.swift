// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import HoldfastStorage

/// SQLite as a cache would use it: WAL, prepared statements, one table, one transaction per put.
///
/// GRDB opens, configures and prepares. The steps call SQLite directly on the prepared statements, so that the figures contain
/// no layer above SQLite.
final class SQLiteSubject: Subject {
    /// The configuration of the database.
    struct Tuning: Sendable {
        let name: String
        let pragmas: [String]

        /// Synchronous NORMAL and the default cache of 2 MB.
        static let plain = Tuning(name: "sqlite", pragmas: ["synchronous = NORMAL"])
        /// A mapped file of 1 GiB and a cache of 64 MiB.
        static let tuned = Tuning(
            name: "sqlite-tuned",
            pragmas: ["synchronous = NORMAL", "mmap_size = 1073741824", "cache_size = -65536"]
        )
        /// The same without any sync.
        static let off = Tuning(
            name: "sqlite-off",
            pragmas: ["synchronous = OFF", "mmap_size = 1073741824", "cache_size = -65536"]
        )
    }

    private static let insertion = "INSERT OR REPLACE INTO entries (key, value) VALUES (?, ?)"
    private static let selection = "SELECT value FROM entries WHERE key = ?"
    private let workload: Workload
    private let queue: DatabaseQueue
    private let name: String

    init(_ setting: SubjectKind.Setting, _ tuning: Tuning) throws {
        workload = setting.workload
        name = tuning.name
        try FileManager.default.createDirectory(atPath: setting.directory, withIntermediateDirectories: true)
        queue = try DatabaseQueue(path: setting.directory + "/entries.sqlite")
        try queue.writeWithoutTransaction { database in
            let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
            guard mode == "wal" else { throw CallFailure(tuning.name, "journal_mode = WAL", 1) }
            for pragma in tuning.pragmas { try database.execute(sql: "PRAGMA \(pragma)") }
            try database.execute(sql: "CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB)")
        }
    }

    func fill(_ steps: [Step]) throws {
        try queue.write { database in
            let statements = try Statements(database)
            for step in steps { try put(step, statements) }
        }
        // Afterwards gets read only the database, not the log.
        try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    }

    func run(_ steps: ArraySlice<Step>) throws {
        try queue.writeWithoutTransaction { database in
            let statements = try Statements(database)
            for step in steps {
                try step.isPut ? put(step, statements) : get(step, statements)
            }
        }
    }

    private struct Statements {
        let insertion: Statement
        let selection: Statement

        init(_ database: Database) throws {
            insertion = try database.cachedStatement(sql: SQLiteSubject.insertion)
            selection = try database.cachedStatement(sql: SQLiteSubject.selection)
        }
    }

    private func put(_ step: Step, _ statements: Statements) throws {
        let statement = statements.insertion.sqliteStatement
        let code = step.key.bytes.withUnsafeBytes { key in
            workload.value(step.entry).withUnsafeBytes { value in
                // No destructor, because the bytes outlive the step.
                sqlite3_bind_blob(statement, 1, key.baseAddress, Int32(key.count), nil)
                sqlite3_bind_blob(statement, 2, value.baseAddress, Int32(value.count), nil)
                let code = sqlite3_step(statement)
                sqlite3_reset(statement)
                sqlite3_clear_bindings(statement)
                return code
            }
        }
        guard code == SQLITE_DONE else { throw CallFailure(name, "insert", code) }
    }

    private func get(_ step: Step, _ statements: Statements) throws {
        let statement = statements.selection.sqliteStatement
        let value: [UInt8]? = step.key.bytes.withUnsafeBytes { key in
            sqlite3_bind_blob(statement, 1, key.baseAddress, Int32(key.count), nil)
            defer {
                sqlite3_reset(statement)
                sqlite3_clear_bindings(statement)
            }
            guard sqlite3_step(statement) == SQLITE_ROW, let bytes = sqlite3_column_blob(statement, 0) else {
                return nil
            }
            let count = Int(sqlite3_column_bytes(statement, 0))
            return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                UnsafeMutableRawBufferPointer(buffer).copyMemory(from: .init(start: bytes, count: count))
                initialized = count
            }
        }
        guard let value, workload.holdsValue(value, step.entry) else {
            throw WrongAnswer(subject: name, entry: step.entry)
        }
    }

    func close() {
        try? queue.close()
    }
}
