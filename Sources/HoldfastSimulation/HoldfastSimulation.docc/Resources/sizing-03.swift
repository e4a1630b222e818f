// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSimulation
import HoldfastStorage

func trace(of log: [(path: String, bytes: UInt32)]) -> RequestTrace {
    var trace = RequestTrace()
    for line in log { trace.append(name: line.path, size: line.bytes) }
    return trace
}

func compare(_ trace: RequestTrace, capacities: [Int]) -> [HitRateResult] {
    var simulator = HitRateSimulator()
    for capacity in capacities {
        simulator.add(.memory, capacity: capacity)
        simulator.add(.lru, capacity: capacity)
    }
    simulator.replay(trace)
    return simulator.results
}

func smallestSize(_ trace: RequestTrace, missingAtMost ratio: Double) -> Double? {
    MissRatioCurve(.memory, trace).smallestSize(missingAtMost: ratio)
}
