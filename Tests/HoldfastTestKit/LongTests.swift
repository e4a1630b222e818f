// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Foundation

/// Whether tests try all there is to try, which takes minutes: `HOLDFAST_LONG_TESTS=1`, which `.ci/full` sets. Otherwise, they try
/// some of it.
package enum LongTests {
    package static let areOn = ProcessInfo.processInfo.environment["HOLDFAST_LONG_TESTS"] == "1"
}
