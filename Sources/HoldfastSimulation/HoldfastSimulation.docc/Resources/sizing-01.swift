// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastStorage

func trace(of log: [(path: String, bytes: UInt32)]) -> RequestTrace {
    var trace = RequestTrace()
    for line in log { trace.append(name: line.path, size: line.bytes) }
    return trace
}
