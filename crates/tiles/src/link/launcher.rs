//! Reads the environment variables that an MPI launcher sets for the processes it starts: the number of processes, the
//! rank of this process, and the MPI implementation that the launcher belongs to. No library is loaded.

use super::no_link;
use cembra_value::Error;

/// The MPI implementation that a launcher belongs to. The library of another implementation does not find the ranks
/// that this launcher started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The launcher belongs to Open MPI, or sets the same variables for its processes.
    OpenMpi,
    /// The launcher belongs to MPICH, or sets the same variables for its processes.
    Mpich,
}

/// The facts that an MPI launcher passed to this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The MPI implementation that the launcher belongs to.
    pub family: Family,
    /// The rank of this process among the processes that the launcher started, from 0.
    pub rank: usize,
    /// The number of processes that the launcher started; `None` if the launcher does not tell.
    pub size: Option<usize>,
}

impl Launch {
    /// Reads the launcher's environment variables through `variable`, which returns the value of a variable by name. `None` if no
    /// launcher started the process.
    ///
    /// # Errors
    /// If the value of a variable is not a number.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Launch>, Error> {
        let number = |name: &str| {
            let number = |text: String| {
                text.trim().parse().map_err(|_| no_link(format!("the variable {name} is not a number: {text:?}")))
            };
            variable(name).map(number).transpose()
        };
        // Slurm offers the interfaces of both; a launcher that runs under it gives more, so it comes first.
        for (family, rank, sizes) in [
            (Family::OpenMpi, "OMPI_COMM_WORLD_RANK", ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"]),
            (Family::Mpich, "PMI_RANK", ["PMI_SIZE", "SLURM_STEP_NUM_TASKS"]),
            (Family::OpenMpi, "PMIX_RANK", ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"]),
        ] {
            if let Some(rank) = number(rank)? {
                let size = number(sizes[0])?.map_or_else(|| number(sizes[1]), |size| Ok(Some(size)))?;
                return Ok(Some(Launch { family, rank, size }));
            }
        }
        Ok(None)
    }

    /// Checks that the rank and size that the MPI library `library` reports agree with the launcher's.
    ///
    /// # Errors
    /// If the ranks or the sizes differ, because the library belongs to another MPI implementation than the launcher.
    pub fn check(&self, rank: usize, size: usize, library: &str) -> Result<(), Error> {
        if rank == self.rank && self.size.is_none_or(|known| known == size) {
            return Ok(());
        }
        let of = self.size.map_or_else(String::new, |size| format!(" of {size}"));
        let message = format!(
            "the launcher started this process as rank {}{of}, but {library} gives it rank {rank} of {size}",
            self.rank
        );
        Err(no_link(message).hint("set `CEMBRA_MPI` to the library that belongs to the launcher"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Result<Option<Launch>, Error> {
        Launch::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let of = |variables: &[(&str, &str)]| launch(variables).expect("numbers");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("SLURM_STEP_NUM_TASKS", "4")]), None);
        let mpich = Launch { family: Family::Mpich, rank: 1, size: Some(4) };
        assert_eq!(of(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), Some(mpich));
        let open = Launch { family: Family::OpenMpi, rank: 2, size: Some(3) };
        let mpirun = [("PMIX_RANK", "2"), ("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "3")];
        assert_eq!(of(&mpirun), Some(open));
        assert_eq!(of(&[("PMIX_RANK", "2"), ("SLURM_STEP_NUM_TASKS", "3")]), Some(open));
        assert_eq!(of(&[("PMIX_RANK", "2")]), Some(Launch { size: None, ..open }));
        for wrong in ["", "-1", "one", "99999999999999999999999"] {
            assert_eq!(launch(&[("PMI_RANK", wrong)]).unwrap_err().code(), "link");
        }
    }

    #[test]
    fn a_library_of_another_family_is_never_a_world_of_one() {
        let launch = Launch { family: Family::Mpich, rank: 0, size: Some(4) };
        assert!(launch.check(0, 4, "libmpi").is_ok());
        for (rank, size) in [(0, 1), (1, 4), (0, 5)] {
            let error = launch.check(rank, size, "libmpi").unwrap_err();
            let said = format!("started this process as rank 0 of 4, but libmpi gives it rank {rank} of {size}");
            assert!(error.to_string().contains(&said), "{error}");
        }
        // Without a size from the launcher, all ranks but the first find the mismatch.
        let unknown = Launch { rank: 1, size: None, ..launch };
        assert!(unknown.check(0, 1, "libmpi").is_err() && unknown.check(1, 7, "libmpi").is_ok());
    }
}
