! Collectives, messages and requests of both kinds in Fortran, with Fortran's constants. Prints "N ranks finished", and a line with
! "wrong" for each wrong result. The test also compiles it with mpi_f08.
program mixed
    use mpi
    implicit none
    integer :: comm, requests(3)
    integer :: statuses(MPI_STATUS_SIZE, 3)
    integer :: rank, size, error, i, left, sent(8), received(8), largest
    logical :: flag
    double precision :: values(4), sums(4)
    integer, allocatable :: all_sent(:)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, size, error)
    allocate (all_sent(8*size))
    left = mod(rank + size - 1, size)
    values = rank + 1
    call MPI_Allreduce(values, sums, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    if (any(sums /= size*(size + 1)/2)) print *, 'wrong all-reduce'
    call MPI_Allreduce(MPI_IN_PLACE, values, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    if (any(values /= size*(size + 1)/2)) print *, 'wrong all-reduce in place'

    call MPI_Comm_dup(MPI_COMM_WORLD, comm, error)
    sent = rank
    call MPI_Iallgather(sent, 8, MPI_INTEGER, all_sent, 8, MPI_INTEGER, comm, requests(1), error)
    call MPI_Isend(sent, 8, MPI_INTEGER, mod(rank + 1, size), 3, comm, requests(2), error)
    call MPI_Irecv(received, 8, MPI_INTEGER, left, 3, comm, requests(3), error)
    call MPI_Waitall(3, requests, statuses, error)
    do i = 1, 3
        if (requests(i) /= MPI_REQUEST_NULL) print *, 'wrong request', i
    end do
    if (any(received /= left)) print *, 'wrong message'
    do i = 1, size
        if (any(all_sent(8*i - 7:8*i) /= i - 1)) print *, 'wrong all-gather', i
    end do
    call MPI_Ibarrier(comm, requests(1), error)
    flag = .false.
    do while (.not. flag)
        call MPI_Test(requests(1), flag, statuses(:, 1), error)
    end do
    call MPI_Ibcast(sent, 8, MPI_INTEGER, 0, comm, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    if (any(sent /= 0)) print *, 'wrong broadcast'
    call MPI_Reduce(rank, largest, 1, MPI_INTEGER, MPI_MAX, 0, comm, error)
    if (rank == 0 .and. largest /= size - 1) print *, 'wrong reduce'
    call MPI_Comm_free(comm, error)
    if (rank == 0) print '(i0, a)', size, ' ranks finished'
    call MPI_Finalize(error)
end program mixed
