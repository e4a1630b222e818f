// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a record says, once it is unsealed.
extension RecordSource {
    /// The detail in plain form; nil when it is of another key, or cannot be opened with this seal.
    ///
    /// - Throws: `.corrupt` where the seal says that the bytes are not what it sealed.
    func detail(key: StoreKey?, seal: (any StoreSeal)?) throws(StoreError) -> RecordDetail? {
        var bytes = detailBytes
        if header.keyID != 0 {
            guard let seal else { return nil }
            do throws(StoreError) {
                let context = SealedPart.detail(order: header.order).context
                bytes = ByteChunk(try seal.open(bytes, keyID: header.keyID, context: context))
            } catch {
                // A key that is no longer known makes the entry unreadable, not wrong.
                if error.code == .sealed { return nil }
                throw error
            }
        } else if seal != nil {
            // What lies in clear where all should be sealed may be anybody's.
            return nil
        }
        guard let key else { return RecordDetail.decode(bytes) }
        return RecordDetail.decode(bytes, knownKey: key)
    }

    /// The entry that the record and its detail make.
    func entry(_ detail: RecordDetail, suspectBefore: UInt64) -> StoredEntry {
        // A change of a pin makes a new record of an old version.
        StoredEntry(StoredEntry.Content(self, detail, needsValidation: header.version < suspectBefore))
    }

    /// The inline body in plain form; whoever calls has checked its sum.
    ///
    /// - Throws: `.sealed` without its key; `.corrupt`.
    func openedBody(seal: (any StoreSeal)?) throws(StoreError) -> ByteChunk {
        let stored = inlineBytes
        guard header.keyID != 0, !stored.isEmpty else { return stored }
        guard let seal else {
            throw StoreError(.sealed, "The body is sealed; open the store with the key it was sealed with.")
        }
        let context = SealedPart.body(order: header.order).context
        return ByteChunk(try seal.open(stored, keyID: header.keyID, context: context))
    }
}
