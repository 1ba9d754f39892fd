package store_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
)

// held stores a claim of another server that was made ago, and that ends after an interval.
func (k *kept) held(ago time.Duration, until string) {
	k.Helper()
	holder, err := uuid.NewV7()
	if err != nil {
		k.Fatal(err)
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().Add(-ago).UnixMilli())) // #nosec G115 -- after 1970
	copy(holder[:6], ms[2:])
	if err := db.Exec(k.Context(), k.pool, `
		INSERT INTO compaction_claims (org, conversation_key, holder, held_until)
		VALUES ($1, $2, $3, now() + $4::interval)
		ON CONFLICT (org, conversation_key) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until`,
		k.org, k.conversation().Key, holder, until); err != nil {
		k.Fatal(err)
	}
}

func (k *kept) claims() int {
	k.Helper()
	n, err := db.One[int](k.Context(), k.pool, `SELECT count(*) FROM compaction_claims WHERE org = $1`, k.org)
	if err != nil {
		k.Fatal(err)
	}
	return n
}

// A claim is given to one holder, until it is released or its lease ends. Who waits for it is busy once the holder has
// worked for the patience.
func TestClaims(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		ago      time.Duration // since another server made its claim
		until    string        // when that claim ends
		patience time.Duration
		busy     bool
	}{
		{"another holder has worked for the patience", time.Hour, "1 hour", 59 * time.Minute, true},
		{"the claimer has waited for its patience", 0, "1 hour", time.Nanosecond, true},
		{"the lease of the other has ended", time.Hour, "-1 second", time.Nanosecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newKept(t)
			k.held(c.ago, c.until)
			release, err := k.store.Claim(t.Context(), k.org, k.conversation(), c.patience)
			if errors.Is(err, db.ErrBusy) != c.busy || (err != nil) != c.busy {
				t.Fatalf("got %v, busy should be %v", err, c.busy)
			}
			if !c.busy {
				release()
			}
			if want := map[bool]int{true: 1, false: 0}[c.busy]; k.claims() != want {
				t.Errorf("%d claims are left, want %d", k.claims(), want)
			}
		})
	}
}

// A claim of another conversation does not matter. A second claimer is busy until the first releases.
func TestAClaimIsOfOneConversation(t *testing.T) {
	t.Parallel()
	k, other := newKept(t), newKept(t)
	release, err := k.store.Claim(t.Context(), k.org, k.conversation(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.Claim(t.Context(), k.org, k.conversation(), time.Nanosecond); !errors.Is(err, db.ErrBusy) {
		t.Errorf("a second claim: got %v, want ErrBusy", err)
	}
	ofOther, err := other.store.Claim(t.Context(), other.org, other.conversation(), time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	ofOther()
	release()
	again, err := k.store.Claim(t.Context(), k.org, k.conversation(), time.Nanosecond)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	again()
}

// A holder that was slow does not end the claim of its successor.
func TestAReleaseEndsOnlyItsOwnClaim(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	release, err := k.store.Claim(t.Context(), k.org, k.conversation(), 0)
	if err != nil {
		t.Fatal(err)
	}
	k.held(0, "1 hour")
	release()
	if k.claims() != 1 {
		t.Error("the claim of the successor is gone")
	}
}

// A release works although its request has ended; a claimer stops waiting when its request ends.
func TestAClaimAfterItsRequest(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	ctx, cancel := context.WithCancel(t.Context())
	release, err := k.store.Claim(ctx, k.org, k.conversation(), 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := k.store.Claim(ctx, k.org, k.conversation(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: got %v", err)
	}
	release()
	if k.claims() != 0 {
		t.Error("the claim is left")
	}
}
