package main

import "slices"

// Cell is what a contender did at one point: medians over its rounds that count.
type Cell struct {
	Rounds    int     // that count
	Void      int     // that do not
	Why       string  // the first of those did not count
	Rate      float64 // decisions a second
	Low, High float64 // least and most of Rate
	P50, P99  float64 // ms
	Max       float64
	ClientCPU float64 // seconds per million decisions
	ServerCPU float64
	Admitted  float64 // share
	Errors    int64   // in all rounds that count
	Foreign   float64 // the most of any round that counts
}

// counts says whether the cell may be compared: most of its rounds are good.
func (c *Cell) counts() bool { return c.Rounds > c.Void }

// cell sums samples up.
func cell(samples []Sample) Cell {
	var c Cell
	var rates, p50, p99, most, client, server, admitted []float64
	for i := range samples {
		s := &samples[i]
		if why := s.void(); why != "" {
			if c.Void++; c.Why == "" {
				c.Why = why
			}
			continue
		}
		c.Rounds++
		millions := float64(s.Admitted+s.Denied) / 1e6
		rates = append(rates, s.Rate)
		p50, p99, most = append(p50, float64(s.P50)/1e3), append(p99, float64(s.P99)/1e3), append(most, float64(s.Max)/1e3)
		client = append(client, s.ClientCPU/millions)
		server = append(server, sum(s.ServerCPU)/millions)
		admitted = append(admitted, float64(s.Admitted)/float64(s.Admitted+s.Denied))
		c.Errors += s.Errors
		c.Foreign = max(c.Foreign, s.Foreign)
	}
	if c.Rounds == 0 {
		return c
	}
	c.Rate, c.Low, c.High = median(rates), slices.Min(rates), slices.Max(rates)
	c.P50, c.P99, c.Max = median(p50), median(p99), median(most)
	c.ClientCPU, c.ServerCPU, c.Admitted = median(client), median(server), median(admitted)
	return c
}

// median of at least one value; of an even number the mean of the middle two.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// ratio is a / b; 0 if there is none.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
