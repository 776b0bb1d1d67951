//! The model's own chance (networks, seeds); what a client waits is drawn by the crate.

use comeback::draw::splitmix64;

/// A stream of words; the same seed gives the same stream.
pub(crate) struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { seed, drawn: 0 }
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.drawn += 1;
        splitmix64(self.seed, self.drawn)
    }

    /// From 0 to 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal, as the sum of twelve uniform numbers: plain additions, the same on every machine. Nothing beyond six deviations.
    pub(crate) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.unit()).sum();
        mean + deviation * (sum - 6.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_their_mean_and_their_deviation() {
        let mut random = Random::new(7);
        let drawn: Vec<f64> = (0..20_000).map(|_| random.normal(10.0, 2.0)).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 10.0).abs() < 0.05, "{mean}");
        assert!((variance.sqrt() - 2.0).abs() < 0.05, "{variance}");
    }
}
