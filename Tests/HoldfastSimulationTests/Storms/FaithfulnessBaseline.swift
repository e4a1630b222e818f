// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the study's own simulator gives for a tenth of its fleet: mean and standard deviation over 60 seeds.
///
/// It is another program in another language with other random numbers, so that runs compare by their statistics only.
enum FaithfulnessBaseline {
    /// Subject, figure, mean, deviation; `never` where no run recovered.
    static let figures: [String: String] = [
        "outage": """
        none: success 0.74981 0.00871, successInFault 0 0, load 1 0, loadInFault 1 0, recoverySeconds 0 0,
        none: peakRate 152.5 14.8, medianSuccessSeconds 0.0468801 0.00355,
        none: p99SuccessSeconds 0.251255 0.0222, p99FailureSeconds 0.005 0, wastedWork 0 0
        3-retries-immediate: success 0.750126 0.00871, successInFault 0.00126292 0.00144,
        3-retries-immediate: load 1.75029 0.0261, loadInFault 3.9976 0.00279, recoverySeconds 0 0,
        3-retries-immediate: peakRate 152.667 14.8, medianSuccessSeconds 0.0469287 0.0034,
        3-retries-immediate: p99SuccessSeconds 0.251406 0.022, p99FailureSeconds 0.02 0, wastedWork 0 0
        full-jitter: success 0.759114 0.00876, successInFault 0.0372147 0.00735, load 1.74522 0.0259,
        full-jitter: loadInFault 3.94142 0.013, recoverySeconds 0 0, peakRate 227.833 41.4,
        full-jitter: medianSuccessSeconds 0.0491915 0.00376, p99SuccessSeconds 0.350234 0.0511,
        full-jitter: p99FailureSeconds 0.64001 0.0085, wastedWork 0 0
        alamofire: success 0.773669 0.0771, successInFault 0.1512 0.00963, load 1.51744 0.157,
        alamofire: loadInFault 2.79586 0.0177, peakRate 271.333 41.9,
        alamofire: medianSuccessSeconds 0.0606576 0.00732, p99SuccessSeconds 2.17551 0.133,
        alamofire: p99FailureSeconds 1.66425 0.574, wastedWork 82.6333 422
        aws-2.1: success 0.74981 0.00871, successInFault 0 0, load 1.0625 0.00131,
        aws-2.1: loadInFault 1.25014 0.0104, recoverySeconds 0 0, peakRate 152.5 14.8,
        aws-2.1: medianSuccessSeconds 0.0468801 0.00355, p99SuccessSeconds 0.251255 0.0222,
        aws-2.1: p99FailureSeconds 0.136641 0.00489, wastedWork 0 0
        grpc: success 0.74981 0.00871, successInFault 0 0, load 1.00765 0.000488,
        grpc: loadInFault 1.03062 0.00226, recoverySeconds 0 0, peakRate 152.5 14.8,
        grpc: medianSuccessSeconds 0.0468801 0.00355, p99SuccessSeconds 0.251255 0.0222,
        grpc: p99FailureSeconds 0.170473 0.0767, wastedWork 0 0
        pool: success 0.753025 0.00863, successInFault 0.0123426 0.0131, load 1.01604 0.00319,
        pool: loadInFault 1.05188 0.00341, recoverySeconds 0 0, peakRate 154.333 15.4,
        pool: p99SuccessSeconds 0.344042 0.225, p99FailureSeconds 1.10131 0.0501
        patient-pool: success 0.842895 0.0133, successInFault 0.371862 0.0479, load 1.12776 0.00831,
        patient-pool: loadInFault 1.05195 0.00337, recoverySeconds 0 0, peakRate 193.5 15.4,
        patient-pool: p99SuccessSeconds 9.643 0.114, p99FailureSeconds 10 8.71e-16
        """,
        "slow": """
        none: success 0.627623 0.0276, successInFault 0.124366 0.0425, load 1 0, loadInFault 1 0,
        none: recoverySeconds 14.3667 1.28, peakRate 159.667 13.3, medianSuccessSeconds 0.0545951 0.00428,
        none: p99SuccessSeconds 0.911658 0.0392, p99FailureSeconds 1 8.78e-16, wastedWork 1462.13 112
        3-retries-immediate: success 0.187168 0.0101, successInFault 0.124153 0.0423, load 3.43851 0.0302,
        3-retries-immediate: loadInFault 3.51958 0.13, recoverySeconds never 0, peakRate 742.833 58.7,
        3-retries-immediate: medianSuccessSeconds 0.0546729 0.00722, p99SuccessSeconds 0.900177 0.0633,
        3-retries-immediate: p99FailureSeconds 4 0, wastedWork 4682.92 73.8
        full-jitter: success 0.187172 0.0101, successInFault 0.124176 0.0423, load 3.43849 0.0302,
        full-jitter: loadInFault 3.48158 0.136, recoverySeconds never 0, peakRate 525.667 44,
        full-jitter: medianSuccessSeconds 0.0546792 0.00722, p99SuccessSeconds 0.90006 0.0632,
        full-jitter: p99FailureSeconds 4.38675 0.0285, wastedWork 4686.5 72.7
        alamofire: success 0.187204 0.0101, successInFault 0.124366 0.0425, load 2.62559 0.0202,
        alamofire: loadInFault 2.48861 0.0943, recoverySeconds never 0, peakRate 375.667 21.3,
        alamofire: medianSuccessSeconds 0.05469 0.00723, p99SuccessSeconds 0.899968 0.063,
        alamofire: p99FailureSeconds 4.5 0, wastedWork 4729.57 69.7
        aws-2.1: success 0.627802 0.0271, successInFault 0.124176 0.0423, load 1.04219 0.000796,
        aws-2.1: loadInFault 1.25099 0.0106, recoverySeconds 14.2333 1.23, peakRate 159.833 13.2,
        aws-2.1: medianSuccessSeconds 0.0547379 0.00428, p99SuccessSeconds 0.915533 0.042,
        aws-2.1: p99FailureSeconds 2.51101 0.484, wastedWork 1463.32 110
        grpc: success 0.627394 0.0271, successInFault 0.124223 0.0424, load 1.0053 0.000373,
        grpc: loadInFault 1.03186 0.00261, recoverySeconds 14.3833 1.25, peakRate 159.667 13.3,
        grpc: medianSuccessSeconds 0.0546297 0.00434, p99SuccessSeconds 0.91084 0.0399,
        grpc: p99FailureSeconds 2.09203 0.00427, wastedWork 1463.18 110
        pool: success 0.627433 0.0307, successInFault 0.123584 0.0291, load 1.01863 0.00615,
        pool: loadInFault 1.044 0.0019, recoverySeconds 14.3667 1.64, peakRate 172.167 25.7,
        pool: p99SuccessSeconds 1.93277 1.12, p99FailureSeconds 3.13462 0.126
        patient-pool: success 0.660605 0.0321, successInFault 0.123584 0.0291, load 1.0696 0.00651,
        patient-pool: loadInFault 1.044 0.0019, recoverySeconds 14.6167 1.66, peakRate 195.333 22.4,
        patient-pool: p99SuccessSeconds 9.51015 0.224, p99FailureSeconds 10 1.44e-15
        """,
        "herd": """
        none: success 0 0, successInFault 0 0, load 1 0, loadInFault 1 0, peakRate 0 0,
        none: p99FailureSeconds 0.005 0, wastedWork 0 0
        3-retries-immediate: success 0 0, successInFault 0 0, load 50 0, loadInFault 50 0, peakRate 0 0,
        3-retries-immediate: p99FailureSeconds 0.25 0, wastedWork 0 0
        full-jitter: success 1 0, successInFault 1 0, load 9.279 0.0391, loadInFault 8.279 0.0391,
        full-jitter: peakRate 59.6667 10.4, lastSuccessSeconds 28.6629 0.757,
        full-jitter: medianSuccessSeconds 15.0471 0.402, p99SuccessSeconds 27.9333 0.781, wastedWork 0 0
        alamofire: success 0.970333 0.0426, successInFault 0.970333 0.0426, load 6.49483 0.0522,
        alamofire: loadInFault 5 0, peakRate 2000 0, lastSuccessSeconds 33.476 0.0687,
        alamofire: medianSuccessSeconds 22.8905 7.97, p99SuccessSeconds 33.4403 0.0779,
        alamofire: wastedWork 104.9 17.6
        aws-2.1: success 0 0, successInFault 0 0, load 1.875 0, loadInFault 1.875 0, peakRate 0 0,
        aws-2.1: p99FailureSeconds 0.0668007 0.0129, wastedWork 0 0
        grpc: success 0 0, successInFault 0 0, load 1.1 0, loadInFault 1.1 0, peakRate 0 0,
        grpc: p99FailureSeconds 0.126369 0.00218, wastedWork 0 0
        pool: success 0 0, successInFault 0 0, load 1.075 0, loadInFault 1.075 0, peakRate 0 0,
        pool: p99FailureSeconds 0.904633 0.283
        patient-pool: success 1 0, successInFault 1 0, load 2.08792 0.00523, loadInFault 1.08792 0.00523,
        patient-pool: peakRate 130 28.3, lastSuccessSeconds 27.1617 1.7, p99SuccessSeconds 26.9425 1.71
        """,
        "brownout": """
        none: success 0.700966 0.0112, successInFault 0.700966 0.0112, load 1 0, loadInFault 1 0,
        none: medianSuccessSeconds 0.0362737 0.00194, p99SuccessSeconds 0.230377 0.0154,
        none: p99FailureSeconds 0.005 0, wastedWork 0 0
        3-retries-immediate: success 0.992287 0.00256, successInFault 0.992287 0.00256, load 1.41506 0.0174,
        3-retries-immediate: loadInFault 1.41489 0.0175, medianSuccessSeconds 0.0427012 0.00254,
        3-retries-immediate: p99SuccessSeconds 0.240874 0.013, p99FailureSeconds 0.02 6.43e-16,
        3-retries-immediate: wastedWork 0 0
        full-jitter: success 0.992673 0.00244, successInFault 0.992673 0.00244, load 1.41503 0.0178,
        full-jitter: loadInFault 1.41348 0.0178, medianSuccessSeconds 0.0599261 0.00324,
        full-jitter: p99SuccessSeconds 0.436982 0.0453, p99FailureSeconds 0.541271 0.0724, wastedWork 0 0
        alamofire: success 0.975678 0.00424, successInFault 0.975678 0.00424, load 1.38631 0.0165,
        alamofire: loadInFault 1.3748 0.0167, medianSuccessSeconds 0.0661755 0.005,
        alamofire: p99SuccessSeconds 1.60959 0.0133, p99FailureSeconds 1.515 0, wastedWork 0 0
        aws-2.1: success 0.974108 0.00475, successInFault 0.974108 0.00475, load 1.38875 0.0163,
        aws-2.1: loadInFault 1.38819 0.0163, medianSuccessSeconds 0.0523377 0.00247,
        aws-2.1: p99SuccessSeconds 0.260745 0.0143, p99FailureSeconds 0.147547 0.00983, wastedWork 0 0
        grpc: success 0.717435 0.0122, successInFault 0.717435 0.0122, load 1.0237 0.00148,
        grpc: loadInFault 1.0237 0.00148, medianSuccessSeconds 0.0376163 0.00195,
        grpc: p99SuccessSeconds 0.271415 0.0242, p99FailureSeconds 0.0389067 0.047, wastedWork 0 0
        pool: success 0.990252 0.00428, successInFault 0.990252 0.00428, load 1.41358 0.023,
        pool: loadInFault 1.41159 0.0233, p99SuccessSeconds 0.531007 0.0567, p99FailureSeconds 0.67531 0.128
        patient-pool: success 0.99871 0.0024, successInFault 0.99871 0.0024, load 1.42509 0.0229,
        patient-pool: loadInFault 1.42297 0.0229, p99SuccessSeconds 0.742153 0.138
        """,
    ]
}
