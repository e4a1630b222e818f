// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A part of a hit with an evaluation, measured alone.
enum Stage: Sendable, Hashable, CaseIterable {
    /// From the URLRequest to the head and the key.
    case key
    /// From the key to the entry and its body, in memory and on the disk.
    case lookUp, lookUpDisk1KiB, lookUpDisk16KiB
    /// From the head and the stored response to the decision.
    case decision
    /// From the stored response to the response.
    case response

    var name: String {
        switch self {
        case .key: "stage-key"
        case .lookUp: "stage-look-up"
        case .lookUpDisk1KiB: "stage-look-up-disk-1KiB"
        case .lookUpDisk16KiB: "stage-look-up-disk-16KiB"
        case .decision: "stage-decision"
        case .response: "stage-response"
        }
    }

    /// The body length of the resources that are looked up.
    var length: Int { self == .lookUpDisk16KiB ? 16 << 10 : 1 << 10 }

    var isOnDisk: Bool { self == .lookUpDisk1KiB || self == .lookUpDisk16KiB }
}
