// This file is copied into a folder of Pebble, so that its tests run over the wrapper.
package vfs_test

import (
	"os"

	"forebay"
	"forebay/pebblefs"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func init() {
	disk := forebay.Disk{
		Name: "disk", Mountpoint: os.TempDir(), ReadIOPS: 200_000, WriteIOPS: 100_000,
		ReadBandwidth: 2_000_000_000, WriteBandwidth: 1_000_000_000,
	}
	scheduler, err := forebay.FromRates([]forebay.Disk{disk}, forebay.Strict)
	if err != nil {
		panic(err)
	}
	class, err := scheduler.AddClass("all", 100)
	if err != nil {
		panic(err)
	}
	vfs.Default = pebblefs.New(vfs.Default, pebblefs.Classes{Reads: class, SequentialReads: class, OtherWrites: class})
}
