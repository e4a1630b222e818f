// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Figures in units that people read.
enum Quantity {
    /// Bytes, in B, KiB, MiB or GiB.
    static func bytes(_ count: Int) -> String {
        var value = Double(count)
        var unit = "B"
        for larger in ["KiB", "MiB", "GiB"] where abs(value) >= 1_024 {
            value /= 1_024
            unit = larger
        }
        return unit == "B" ? "\(count) B" : "\(tenths(value)) \(unit)"
    }

    /// A share, in percent.
    static func percent(_ share: Double) -> String {
        "\(tenths(100 * share)) %"
    }

    /// Milliseconds, in µs, ms or s.
    static func time(_ milliseconds: Double) -> String {
        if milliseconds < 1 { return "\(Int((milliseconds * 1_000).rounded())) µs" }
        if milliseconds < 1_000 { return "\(tenths(milliseconds)) ms" }
        return "\(tenths(milliseconds / 1_000)) s"
    }

    /// One decimal, whatever the locale.
    private static func tenths(_ value: Double) -> String {
        let tenths = (abs(value) * 10).rounded()
        guard tenths.isFinite, tenths < 1e15 else { return "\(value)" }
        let whole = Int(tenths)
        return "\(value < 0 ? "-" : "")\(whole / 10).\(whole % 10)"
    }
}
