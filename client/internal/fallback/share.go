package fallback

// Share is which part of the limits a client may spend: one of Clients, and the
// Rank-th of them, from 0. The zero Share is the whole.
type Share struct{ Clients, Rank int }

// of divides a limit of amount and burst among the clients so that their parts make
// the whole again: what does not divide goes to some of them, others for each salt. A
// limit too small for all is split among as many as it has tokens for, and the others
// get nothing: more would be more than the limit.
func (s Share) of(amount, burst, salt uint64) (myAmount, myBurst uint64) {
	clients := uint64(max(1, s.Clients))
	holders := min(clients, amount, burst)
	place := (uint64(max(0, s.Rank)) + salt%clients) % clients
	if place >= holders {
		return 0, 0
	}
	return part(amount, holders, place), part(burst, holders, place)
}

// part is the place-th of n parts of a whole.
func part(whole, n, place uint64) uint64 {
	p := whole / n
	if place < whole%n {
		p++
	}
	return p
}
