// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What keeping an entry is worth: how often its key was asked for of late, against its bytes to the power of 0.1.
///
/// A logarithm in steps of 1/512 of a doubling, so that worths compare as integers alike on every platform.
enum EntryWorth {
    /// The exponent of the bytes in 1/1,024: low, because a disk is there for bytes.
    static let beta = 102
    /// What a use since the entry was written adds: it decides between entries used equally often.
    private static let useBonus = 150

    /// - Parameters:
    ///   - frequency: as a ``FrequencySketch`` estimates it.
    ///   - wasUsed: whether the entry was used since it was written or carried.
    ///   - bytes: what the entry takes, its blob included.
    static func of(frequency: Int, wasUsed: Bool, bytes: Int) -> Int32 {
        let weight = DensityWeight.weight(ofCount: frequency)
        let worth = DensityWeight.score(weight, size: UInt32(clamping: bytes), beta: beta)
        return Int32(truncatingIfNeeded: worth + (wasUsed ? useBonus : 0))
    }
}
