// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if LMDB
    internal import CLMDB
    internal import Foundation
    internal import HoldfastStorage

    /// LMDB without syncs: a mapped tree, one transaction per put, one renewed read transaction per get.
    final class LMDBSubject: Subject {
        private let workload: Workload
        private let environment: OpaquePointer
        private let database: MDB_dbi
        private let reading: OpaquePointer

        init(_ setting: SubjectKind.Setting) throws {
            workload = setting.workload
            try FileManager.default.createDirectory(atPath: setting.directory, withIntermediateDirectories: true)
            environment = try Self.made("mdb_env_create") { mdb_env_create($0) }
            try Self.check("mdb_env_set_mapsize", mdb_env_set_mapsize(environment, 16 << 30))
            // No thread-local reader slots, because the thread may change at an await between two turns.
            let flags = UInt32(MDB_NOSYNC) | UInt32(MDB_NOTLS)
            try Self.check("mdb_env_open", mdb_env_open(environment, setting.directory, flags, 0o600))
            let environment = environment
            let opening = try Self.made("mdb_txn_begin") { mdb_txn_begin(environment, nil, 0, $0) }
            var database: MDB_dbi = 0
            try Self.check("mdb_dbi_open", mdb_dbi_open(opening, nil, 0, &database))
            try Self.check("mdb_txn_commit", mdb_txn_commit(opening))
            self.database = database
            reading = try Self.made("mdb_txn_begin") { mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), $0) }
            mdb_txn_reset(reading)
        }

        func fill(_ steps: [Step]) throws {
            for start in stride(from: 0, to: steps.count, by: 256) {
                try write(steps[start..<min(start + 256, steps.count)])
            }
        }

        func run(_ steps: ArraySlice<Step>) throws {
            for step in steps {
                if step.isPut { try write([step]) } else { try get(step) }
            }
        }

        private func write(_ steps: ArraySlice<Step>) throws {
            let transaction = try Self.made("mdb_txn_begin") { mdb_txn_begin(environment, nil, 0, $0) }
            for step in steps {
                let code = step.key.bytes.withUnsafeBytes { keyBytes in
                    workload.value(step.entry).withUnsafeBytes { valueBytes in
                        // LMDB reads both and modifies neither.
                        var key = MDB_val(mv_size: keyBytes.count, mv_data: .init(mutating: keyBytes.baseAddress))
                        var value = MDB_val(mv_size: valueBytes.count, mv_data: .init(mutating: valueBytes.baseAddress))
                        return mdb_put(transaction, database, &key, &value, 0)
                    }
                }
                if code != 0 { mdb_txn_abort(transaction) }
                try Self.check("mdb_put", code)
            }
            try Self.check("mdb_txn_commit", mdb_txn_commit(transaction))
        }

        private func get(_ step: Step) throws {
            try Self.check("mdb_txn_renew", mdb_txn_renew(reading))
            defer { mdb_txn_reset(reading) }
            let bytes: [UInt8]? = step.key.bytes.withUnsafeBytes { keyBytes in
                var key = MDB_val(mv_size: keyBytes.count, mv_data: .init(mutating: keyBytes.baseAddress))
                var value = MDB_val()
                guard mdb_get(reading, database, &key, &value) == 0, let start = value.mv_data else { return nil }
                return [UInt8](unsafeUninitializedCapacity: value.mv_size) { buffer, initialized in
                    UnsafeMutableRawBufferPointer(buffer).copyMemory(from: .init(start: start, count: value.mv_size))
                    initialized = value.mv_size
                }
            }
            guard let bytes, workload.holdsValue(bytes, step.entry) else {
                throw WrongAnswer(subject: "lmdb", entry: step.entry)
            }
        }

        func close() {
            mdb_txn_abort(reading)
            mdb_env_close(environment)
        }

        private static func made(
            _ call: String,
            _ make: (UnsafeMutablePointer<OpaquePointer?>) -> Int32
        ) throws -> OpaquePointer {
            var pointer: OpaquePointer?
            let code = make(&pointer)
            guard code == 0, let pointer else { throw CallFailure("lmdb", call, code) }
            return pointer
        }

        private static func check(_ call: String, _ code: Int32) throws {
            guard code == 0 else { throw CallFailure("lmdb", call, code) }
        }
    }
#endif
