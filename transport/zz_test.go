package transport_test
import ("testing";"time";"strings";"github.com/hashicorp/raft")
func TestZZ(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		leader := f.leads(all...)
		commit(t, leader, "x")
		time.Sleep(time.Second)
		b:= f.net.Written("a", "b"); b2:=f.net.Written("b","c")
		time.Sleep(time.Minute)
		t.Log(leader.id, f.net.Written("a", "b") - b, f.net.Written("b","c")-b2)
		t.Log(all[0].log.String())
	})
	inBubble(t, func(t *testing.T, f *field) {
				ns := f.mesh("a", "b", "c", "d")
				all := group(t, ns[:3])
				leader := f.leads(all...)
				for range 20 {
					commit(t, leader, strings.Repeat("s", 400_000))
				}
				forget(t, leader)
				for _, n := range []string{"a", "b", "c"} {
					f.net.Delay(n, "d", 5*time.Millisecond)
					f.net.Delay("d", n, 5*time.Millisecond)
				}
				fresh := ns[3].run(t, id("d"), nil)
				add := leader.AddNonvoter(raft.ServerID(id("d")), raft.ServerAddress(id("d")), 0, time.Second)
				if err := add.Error(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(40 * time.Millisecond)
				f.net.Cut("d", "a"); f.net.Cut("d", "b"); f.net.Cut("d", "c")
				time.Sleep(20 * time.Second)
				f.net.HealAll()
				time.Sleep(10*time.Second)
				t.Log(leader.log.String()); t.Log(fresh.log.String())
	})
}
