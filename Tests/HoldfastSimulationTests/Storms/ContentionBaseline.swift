// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// The figures that the simulator of the AWS Architecture Blog gave: 5 algorithms, 19 numbers of clients, 100 trials each.
struct ContentionBaseline: Sendable, CustomStringConvertible {
    let algorithm: String
    let clients: Int
    let milliseconds: Double
    let millisecondsDeviation: Double
    let calls: Double
    let callsDeviation: Double

    var description: String { "\(algorithm), \(clients) clients" }

    /// The first exponent of the simulator is 1, so that its series begin with twice the base; decorrelated has no exponent.
    var backoff: Backoff? {
        switch algorithm {
        case "None": Backoff(base: .zero, jitter: .none)
        case "Exponential": Backoff(base: .milliseconds(10), cap: .seconds(2), jitter: .none)
        case "EqualJitter": Backoff(base: .milliseconds(10), cap: .seconds(2), jitter: .equal)
        case "FullJitter": Backoff(base: .milliseconds(10), cap: .seconds(2), jitter: .full)
        case "Decorr": Backoff(base: .milliseconds(5), cap: .seconds(2), jitter: .decorrelated)
        default: nil
        }
    }

    private init?(_ line: Substring) {
        let words = line.split(separator: ",")
        guard words.count == 6, let clients = Int(words[1]) else { return nil }
        let numbers = words[2...].compactMap { Double($0) }
        guard numbers.count == 4 else { return nil }
        algorithm = String(words[0])
        self.clients = clients
        (milliseconds, millisecondsDeviation) = (numbers[0], numbers[1])
        (calls, callsDeviation) = (numbers[2], numbers[3])
    }

    /// All rows.
    static let all: [ContentionBaseline] = figures.split(separator: "\n").compactMap { ContentionBaseline($0) }

    /// Algorithm, clients, milliseconds (mean, deviation), calls (mean, deviation).
    private static let figures = """
        None,10,380.8,32.9,50.99,3.77
        Exponential,10,3511.9,1234.7,50.97,4.00
        EqualJitter,10,748.4,226.1,42.40,2.57
        FullJitter,10,459.3,130.9,38.69,2.30
        Decorr,10,439.0,99.0,37.53,2.12
        None,20,600.3,52.8,150.11,11.56
        Exponential,20,14695.0,2914.0,150.95,14.87
        EqualJitter,20,1590.4,419.7,107.68,4.60
        FullJitter,20,1033.8,321.3,101.15,3.27
        Decorr,20,818.7,186.3,101.13,4.80
        None,30,774.4,53.9,286.35,16.03
        Exponential,30,22222.5,2951.4,275.41,16.79
        EqualJitter,30,2592.2,658.5,182.29,5.11
        FullJitter,30,1664.2,398.1,172.22,4.46
        Decorr,30,1289.7,265.9,180.58,8.09
        None,40,955.1,46.2,467.08,15.77
        Exponential,40,29687.6,3545.5,437.15,22.47
        EqualJitter,40,3564.9,662.8,261.62,5.27
        FullJitter,40,2321.3,484.2,249.93,4.30
        Decorr,40,1752.8,433.9,270.97,9.50
        None,50,1137.0,40.1,690.09,16.61
        Exponential,50,36952.7,3587.6,626.73,27.52
        EqualJitter,50,4348.5,685.7,346.73,5.92
        FullJitter,50,2882.4,571.7,332.03,4.66
        Decorr,50,2186.8,502.9,371.51,12.86
        None,60,1322.1,44.3,954.20,18.11
        Exponential,60,42521.9,3309.3,830.75,37.50
        EqualJitter,60,4712.2,646.7,435.51,7.09
        FullJitter,60,3347.2,492.0,419.64,4.66
        Decorr,60,2795.7,627.9,484.78,15.27
        None,70,1504.7,42.7,1265.68,24.12
        Exponential,70,48641.9,3623.8,1055.67,45.70
        EqualJitter,70,5366.7,654.3,525.49,6.11
        FullJitter,70,3792.9,537.9,509.24,4.90
        Decorr,70,3190.6,634.9,607.25,19.42
        None,80,1676.8,43.6,1608.35,25.68
        Exponential,80,54476.8,3586.9,1310.78,54.45
        EqualJitter,80,5889.3,601.0,619.11,7.23
        FullJitter,80,4163.0,492.7,602.47,6.61
        Decorr,80,3580.0,605.8,732.11,23.00
        None,90,1852.1,43.6,1992.89,28.99
        Exponential,90,59188.9,3806.2,1577.29,58.09
        EqualJitter,90,6236.3,646.1,713.99,7.41
        FullJitter,90,4564.3,583.0,698.08,6.79
        Decorr,90,4129.5,636.2,864.68,24.34
        None,100,2023.7,40.0,2423.36,31.54
        Exponential,100,63431.3,4362.6,1850.24,64.00
        EqualJitter,100,6776.1,671.4,812.66,7.38
        FullJitter,100,4973.9,496.6,795.89,7.55
        Decorr,100,4694.9,803.4,1001.65,29.21
        None,110,2205.2,44.4,2897.20,38.61
        Exponential,110,68409.9,3557.5,2168.37,65.77
        EqualJitter,110,7074.4,630.6,911.18,8.25
        FullJitter,110,5184.0,542.9,896.22,7.80
        Decorr,110,4999.6,598.9,1147.84,31.17
        None,120,2376.4,42.3,3393.85,38.33
        Exponential,120,72409.6,3391.4,2479.59,68.27
        EqualJitter,120,7238.7,526.3,1011.41,9.05
        FullJitter,120,5560.7,492.8,999.65,7.61
        Decorr,120,5359.9,710.4,1296.93,36.64
        None,130,2536.0,49.1,3932.28,39.56
        Exponential,130,77346.1,3629.5,2824.21,78.01
        EqualJitter,130,7594.5,604.1,1114.82,9.18
        FullJitter,130,5829.3,526.7,1103.03,8.13
        Decorr,130,5788.0,709.8,1446.15,36.80
        None,140,2713.2,51.5,4524.68,50.37
        Exponential,140,81996.6,3837.3,3177.79,83.22
        EqualJitter,140,7994.0,715.4,1218.75,10.85
        FullJitter,140,6099.2,441.4,1207.93,8.56
        Decorr,140,6054.8,692.7,1596.45,48.48
        None,150,2875.2,45.4,5145.24,51.64
        Exponential,150,85587.7,3764.2,3538.43,92.84
        EqualJitter,150,8326.3,642.3,1325.07,11.26
        FullJitter,150,6383.9,526.3,1316.21,8.60
        Decorr,150,6530.4,695.9,1760.96,48.89
        None,160,3046.0,41.2,5802.80,52.27
        Exponential,160,89996.4,4202.9,3946.97,95.46
        EqualJitter,160,8523.6,618.9,1430.74,10.49
        FullJitter,160,6666.5,491.8,1429.77,8.96
        Decorr,160,6803.8,852.8,1930.44,49.10
        None,170,3215.4,46.0,6503.93,49.64
        Exponential,170,93339.0,3922.1,4310.58,104.35
        EqualJitter,170,8845.2,619.5,1539.85,10.13
        FullJitter,170,6971.4,458.0,1540.72,8.99
        Decorr,170,7323.1,805.8,2083.73,48.39
        None,180,3378.8,45.9,7239.90,66.82
        Exponential,180,97358.9,4533.2,4734.66,121.15
        EqualJitter,180,9217.1,743.6,1648.73,11.42
        FullJitter,180,7199.6,514.1,1656.85,10.90
        Decorr,180,7599.5,788.8,2258.46,59.51
        None,190,3537.9,40.6,8008.16,62.71
        Exponential,190,100622.0,4037.7,5157.18,115.71
        EqualJitter,190,9430.2,639.7,1760.18,11.38
        FullJitter,190,7482.2,602.3,1773.05,11.24
        Decorr,190,7971.6,888.7,2432.61,52.69
        """
}
