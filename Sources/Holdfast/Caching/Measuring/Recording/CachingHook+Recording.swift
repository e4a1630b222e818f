// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// Recording what the cache is asked for.
extension CachingHook {
    /// Records a request that is answered from the store.
    func record(_ held: HeldResponse) {
        guard let recorder = cache.recording.recorder else { return }
        let entry = held.entry
        _ = recorder.record(
            RecordedEntry(
                key: entry.key,
                variant: entry.variant,
                description: entry.description,
                bodyLength: entry.bodyLength,
                held.stored,
                cache.options
            )
        )
    }

    /// Records a request that is answered by an exchange; what may not be stored is no request that a cache could answer.
    func record(_ outcome: HopOutcome, _ response: inout Response) {
        if let held = outcome.held { return record(held) }
        guard let recorder = cache.recording.recorder, let entry = outcome.entry else { return }
        let length = entry.bodyLength ?? response.body.length
        let place = recorder.record(
            RecordedEntry(
                key: entry.key,
                variant: entry.variant,
                description: entry.description,
                bodyLength: length ?? 0,
                entry.stored,
                cache.options
            )
        )
        guard length == nil, let place else { return }
        response.body = counted(response.body) { recorder.add($0, to: place) }
    }
}
