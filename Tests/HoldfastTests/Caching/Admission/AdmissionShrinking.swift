// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The ways to make a sequence shorter and plainer.
enum AdmissionShrinking {
    /// Each gives a shorter or plainer sequence, or nil where it changes nothing of the one it is given.
    static func candidates(of sequence: AdmissionSequence) -> [(AdmissionSequence) -> AdmissionSequence?] {
        var candidates: [(AdmissionSequence) -> AdmissionSequence?] = []
        var count = sequence.steps.count / 2
        while count > 0 {
            // From behind, so that what is dropped moves nothing that is still to be tried.
            for start in stride(from: 0, to: sequence.steps.count, by: count).reversed() {
                candidates.append { [count] sequence in
                    guard start < sequence.steps.count else { return nil }
                    var shorter = sequence
                    shorter.steps.removeSubrange(start..<min(start + count, shorter.steps.count))
                    return shorter
                }
            }
            count /= 2
        }
        guard sequence.steps.count <= 8 else { return candidates }
        for index in sequence.steps.indices {
            for change in simplerSteps(than: sequence.steps[index]) {
                candidates.append { sequence in
                    guard sequence.steps.indices.contains(index) else { return nil }
                    var plainer = sequence
                    plainer.steps[index] = change(sequence.steps[index])
                    return "\(plainer.steps[index])" == "\(sequence.steps[index])" ? nil : plainer
                }
            }
        }
        return candidates
    }

    private static func simplerSteps(than step: AdmissionStep) -> [(AdmissionStep) -> AdmissionStep] {
        guard case .call = step else { return [] }
        func changed(_ change: @escaping (inout PlannedCall, inout PlannedAnswer) -> Void) -> (AdmissionStep) ->
            AdmissionStep
        {
            { step in
                guard case .call(var call, var answer, let isHeld) = step else { return step }
                change(&call, &answer)
                return .call(call, answer, isHeld: isHeld)
            }
        }
        var changes = [
            changed { call, _ in call.user = .guest }, changed { call, _ in call.path = "/a" },
            changed { call, _ in (call.method, call.isQuery) = ("GET", false) },
            changed { call, _ in (call.content, call.isQuery) = (nil, false) },
            changed { call, _ in call.cacheControl = nil }, changed { call, _ in call.directive = .none },
            changed { call, _ in call.condition = nil }, changed { call, _ in call.range = nil },
            changed { call, _ in call.hasIfRange = false }, changed { call, _ in call.selecting = [:] },
            changed { _, answer in answer = PlannedAnswer() }, changed { _, answer in answer.outcome = .success },
            changed { _, answer in answer.vary = nil }, changed { _, answer in answer.setsCookie = false },
            changed { _, answer in answer.tag = .none }, changed { _, answer in answer.modified = .none },
            changed { _, answer in answer.coding = .identity }, changed { _, answer in answer.digests = [] },
            changed { _, answer in answer.digests = Array(answer.digests.prefix(1)) },
            changed { _, answer in answer.digests = Array(answer.digests.suffix(1)) },
            changed { _, answer in answer.age = nil }, changed { _, answer in answer.honorsConditions = true },
            changed { _, answer in answer.honorsRange = true }, changed { _, answer in answer.breaksAfter = nil },
            changed { _, answer in answer.notModifiedHasCacheControl = true },
            changed { _, answer in answer.notModifiedHasValidators = true },
            { step in
                guard case .call(let call, let answer, _) = step else { return step }
                return .call(call, answer, isHeld: false)
            },
        ]
        for name in ["X-User", "Accept-Language", "Accept-Encoding"] {
            changes.append(changed { call, _ in call.selecting[name] = nil })
        }
        for position in 0..<8 {
            changes.append(
                changed { _, answer in
                    if answer.cacheControl.indices.contains(position) { answer.cacheControl.remove(at: position) }
                }
            )
        }
        return changes
    }
}
