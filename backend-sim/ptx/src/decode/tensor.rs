//! Instructions on tensor maps: `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, and prefetches, of tiles; copies of maps.

use super::builder::Builder;
use super::form::Form;
use crate::error::Error;
use crate::op::{FenceKind, Memory, Op, Reg, Unit, Warp};
use crate::syntax::Operand;
use crate::tensor::{TileForm, TileKind};
use crate::types::{Space, Type};

/// A tensor map.
const MAP_BYTES: u64 = 128;

/// Modifiers that PTX has and that are not known here, by how they begin, and what they are about.
const UNKNOWN: [(&str, &str); 4] = [
    ("im2col", "a tensor is copied in tiles here, and not in columns of an image"),
    ("tile::gather4", "a tile is made of rows that follow each other here"),
    ("tile::scatter4", "a tile is made of rows that follow each other here"),
    ("cta_group", "pairs of blocks do not multiply together here"),
];

impl<'a> Builder<'_, 'a> {
    /// What follows `cp.async.bulk.tensor` and its kin.
    pub(super) fn tile(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>], reduces: bool) -> Result<(), Error> {
        for (modifier, why) in UNKNOWN {
            if form.behind(modifier).is_some() {
                return Err(form.error(format!("the modifier .{modifier} of {} is not known here: {why}", form.name())));
            }
        }
        let hinted = form.cache_hints();
        let prefetches = form.has("prefetch");
        let rank = form.need(&["1d", "2d", "3d", "4d", "5d"])?;
        let rank = usize::from(rank.as_bytes()[0] - b'0');
        form.has("tile");
        let operands = match (operands, hinted) {
            ([operands @ .., _], true) | (operands, false) => operands,
            _ => return Err(form.unknown()),
        };
        if !form.has("bulk") {
            return Err(form.unknown());
        }
        let spaces = form.take_spaces();
        let (operands, mask) = match (form.has("multicast::cluster"), operands) {
            (true, [operands @ .., mask]) => (operands, Some(mask)),
            (false, operands) => (operands, None),
            (true, []) => return Err(form.unknown()),
        };
        if prefetches {
            let ([tile], ["global"], false) = (operands, &spaces[..], reduces) else { return Err(form.unknown()) };
            form.has("L2");
            self.in_tensor(form, tile, rank)?; // what only caches see
            return Ok(());
        }
        let (kind, tile, shared, barrier) = match (operands, &spaces[..], reduces) {
            ([shared, tile, barrier], ["shared::cluster" | "shared::cta", "global"], false)
                if form.has("mbarrier::complete_tx::bytes") =>
            {
                (TileKind::Load, tile, shared, Some(barrier))
            }
            ([tile, shared], ["global", "shared::cta"], _) if form.has("bulk_group") => {
                let kind = if reduces { TileKind::Reduce(form.reduction()?) } else { TileKind::Store };
                (kind, tile, shared, None)
            }
            _ => return Err(form.unknown()),
        };
        let (map, corner) = self.in_tensor(form, tile, rank)?;
        let shared = self.address(form, shared)?;
        let barrier = barrier.map(|barrier| self.address(form, barrier)).transpose()?;
        self.found.copies = true;
        match (mask, barrier) {
            (None, _) => self.one_tile(TileForm { kind, map, shared, corner, barrier }),
            (Some(mask), Some(barrier)) if spaces[0] == "shared::cluster" => {
                let mask = self.source(mask, Type::U16)?;
                self.in_each_block(mask, (shared, barrier), |builder, (shared, barrier)| {
                    builder.one_tile(TileForm { kind, map, shared, corner: corner.clone(), barrier: Some(barrier) })
                })
            }
            _ => Err(form.unknown()),
        }
    }

    fn one_tile(&mut self, form: TileForm) -> Result<(), Error> {
        let how = u16::try_from(self.code.tiles.len());
        let how = how.map_err(|_| self.error("more than 65,535 copies of tiles in a function"))?;
        self.code.tiles.push(form);
        self.emit(Op::Tile { how });
        Ok(())
    }

    /// `[map, {x, y}]`: the registers of the map's address and of the coordinates, of which there are as many as dimensions.
    fn in_tensor(&mut self, form: &Form<'a>, tile: &Operand<'a>, rank: usize) -> Result<(Reg, Vec<Reg>), Error> {
        let Operand::Tile { base, offset, corner } = tile else {
            return Err(form.error("expected a tensor map and coordinates in brackets"));
        };
        if corner.len() != rank {
            return Err(form.error(format!("{} has {} coordinates", form.name(), corner.len())));
        }
        let map = self.address(form, &Operand::Address { base: *base, offset: *offset })?;
        let corner = corner.iter().map(|coordinate| self.source(coordinate, Type::S32)).collect::<Result<_, _>>()?;
        Ok((map, corner))
    }

    /// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [to], [from], 128`: a warp copies a tensor map to global
    /// memory, by one of its threads. The fence is one between proxies, which does nothing here.
    pub(super) fn copy_map(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let known = ["cp_fenceproxy", "tensormap::generic", "release", "sync", "aligned"];
        let [to, from, Operand::Bits(MAP_BYTES)] = operands else { return Err(form.unknown()) };
        if !known.iter().all(|word| form.has(word)) || form.take_spaces() != ["global", "shared::cta"] {
            return Err(form.unknown());
        }
        let scope = form.scope().ok_or_else(|| form.unknown())?;
        let (to, from) = (self.address(form, to)?, self.address(form, from)?);
        let (mask, lane, copies, word) =
            (self.constant(0xffff_ffff)?, self.temporary()?, self.temporary()?, self.temporary()?);
        self.warp(Warp::Elect, [lane, copies, mask, mask, mask], mask)?;
        let others = self.emit(Op::BranchIf { p: copies, unless: true, target: 0 });
        for offset in (0..MAP_BYTES as i32).step_by(8) {
            // tiles are copied by maps at multiples of 64 only
            let align = if offset == 0 { 64 } else { 8 };
            let of_map = |space, align| Memory { align, unit: Unit::TensorMap, ..Memory::plain(space, 8) };
            self.emit(Op::load(word, from, offset, of_map(Space::Shared, 8)));
            self.emit(Op::store(word, to, offset, of_map(Space::Global, align)));
        }
        let end = self.code.ops.len() as u32;
        self.code.ops[others] = Op::BranchIf { p: copies, unless: true, target: end };
        self.warp(Warp::Sync, [lane, copies, mask, mask, mask], mask)?;
        self.emit(Op::Fence { fence: FenceKind::OtherProxy, scope });
        Ok(())
    }
}
