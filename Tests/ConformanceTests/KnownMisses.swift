// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The required and optimal cases that are known not to pass, each with its reason.
///
/// A miss that is not listed fails the tests, and so does a listed case that passes: the list can only be true.
enum KnownMisses {
    /// The ids of one mode, with the reason for each.
    static func reasons(_ mode: ConformanceMode) -> [String: String] {
        let own = mode == .private ? ofPrivateMode : ofSharedMode
        let built = Dictionary(uniqueKeysWithValues: (ofBothModes + own).map { ($0, "not built yet") })
        return built.merging(contradictory) { _, reason in reason }
    }

    /// What no cache can pass that keeps to the RFC; files that lack the case lose nothing by its name here.
    private static let contradictory = [
        "conditional-lm-fresh-no-lm": "asks for a 304 that RFC 9111 §4.3.2 does not give without a Last-Modified"
    ]

    /// Missed in both modes.
    private static let ofBothModes: [String] = []

    /// Missed in private mode only.
    private static let ofPrivateMode: [String] = []

    /// Missed in shared mode only.
    private static let ofSharedMode: [String] = []
}
