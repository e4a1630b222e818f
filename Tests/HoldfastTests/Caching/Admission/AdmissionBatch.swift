// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastStorage
import Synchronization

/// Sequences that run one after another over the same stores.
struct AdmissionBatch {
    /// How the answers of a setting came about.
    struct Counts: Sendable {
        var sequences = 0
        var answers = 0
        var hits = 0
        var revalidated = 0
        var joined = 0
        var shared = 0
        var errors = 0

        static func += (left: inout Counts, right: Counts) {
            left.sequences += right.sequences
            left.answers += right.answers
            left.hits += right.hits
            left.revalidated += right.revalidated
            left.joined += right.joined
            left.shared += right.shared
            left.errors += right.errors
        }
    }

    /// A sequence with a violation, as short as it could be made.
    struct Failure: Sendable {
        let fault: AdmissionViolation.Fault
        let sequence: AdmissionSequence
        let text: String
    }

    struct Outcome: Sendable {
        var counts: [String: Counts] = [:]
        /// In how many sequences each fault was found.
        var faults: [AdmissionViolation.Fault: Int] = [:]
        var failures: [Failure] = []
    }

    private let stores: AdmissionStores
    private let known: KnownFaults
    private var runs = 0
    private var outcome = Outcome()

    /// - Parameter known: the faults of which an example was made short already; further ones are only counted.
    static func run(_ seeds: Range<UInt64>, known: KnownFaults) async throws -> Outcome {
        var batch = AdmissionBatch(stores: try await AdmissionStores(), known: known)
        for seed in seeds { await batch.run(seed) }
        await batch.stores.close()
        return batch.outcome
    }

    private init(stores: AdmissionStores, known: KnownFaults) {
        self.stores = stores
        self.known = known
    }

    /// Both modes in turn; one sequence in ten over a disk, and one over memory and disk.
    private static func setting(of seed: UInt64) -> AdmissionSetting {
        let identities = AdmissionSetting.Identity.allCases
        return AdmissionSetting(
            mode: seed % 2 == 0 ? .shared : .private,
            store: seed / 2 % 10 == 0 ? .disk : seed / 2 % 10 == 5 ? .tiered : .memory,
            identity: identities[Int(seed / 20 % UInt64(identities.count))]
        )
    }

    private mutating func run(_ seed: UInt64) async {
        let setting = AdmissionBatch.setting(of: seed)
        let sequence = AdmissionGenerator.sequence(seed: seed, setting: setting)
        let model = AdmissionModel(setting: setting, log: await play(sequence))
        outcome.counts["\(setting.mode) \(setting.store.rawValue)", default: Counts()] += model.counts()
        for fault in Set(model.violations().map(\.fault)).sorted() {
            outcome.faults[fault, default: 0] += 1
            if known.insert(fault) { await shrink(sequence, fault, seen: model) }
        }
    }

    private mutating func play(_ sequence: AdmissionSequence) async -> AdmissionLog {
        runs += 1
        return await AdmissionRun.play(
            sequence,
            store: stores.store(for: sequence.setting),
            host: "h\(sequence.seed)-\(runs).example"
        )
    }

    /// - Parameter model: what was seen; over a disk it may not come about again.
    private mutating func shrink(
        _ original: AdmissionSequence,
        _ fault: AdmissionViolation.Fault,
        seen model: AdmissionModel
    ) async {
        var sequence = original
        // Over memory a sequence has one outcome, so that is where it is looked into wherever it fails there too.
        var inMemory = sequence
        inMemory.setting.store = .memory
        if await violations(of: inMemory).contains(where: { $0.fault == fault }) { sequence = inMemory }
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            for candidate in AdmissionShrinking.candidates(of: sequence) {
                guard let shorter = candidate(sequence),
                    await violations(of: shorter).contains(where: { $0.fault == fault })
                else { continue }
                sequence = shorter
                hasChanged = true
            }
        }
        let log = await play(sequence)
        let found = AdmissionModel(setting: sequence.setting, log: log).violations().filter { $0.fault == fault }
        var text = "\(sequence)\n\(log.description)\n  \(found.first?.description ?? "seen before, and not again")"
        if found.isEmpty {
            let seen = model.violations().filter { $0.fault == fault }
            text = "\(original)\n\(model.log.description)\n  \(seen), and not when it was played again"
        }
        outcome.failures.append(Failure(fault: fault, sequence: sequence, text: text))
    }

    private mutating func violations(of sequence: AdmissionSequence) async -> [AdmissionViolation] {
        AdmissionModel(setting: sequence.setting, log: await play(sequence)).violations()
    }
}

/// The faults that several batches have shown.
final class KnownFaults: Sendable {
    private let faults = Mutex<Set<AdmissionViolation.Fault>>([])

    /// Whether the fault is new.
    func insert(_ fault: AdmissionViolation.Fault) -> Bool {
        faults.withLock { $0.insert(fault).inserted }
    }
}

extension AdmissionModel {
    /// What the calls were answered from.
    func counts() -> AdmissionBatch.Counts {
        var counts = AdmissionBatch.Counts(sequences: 1)
        for call in log.calls {
            let check = AdmissionCheck(call, self)
            counts.answers += 1
            if call.error != nil { counts.errors += 1 }
            if check.isHit { counts.hits += 1 }
            if check.isRevalidated { counts.revalidated += 1 }
            if check.isJoined { counts.joined += 1 }
            if check.isShared { counts.shared += 1 }
        }
        return counts
    }
}
